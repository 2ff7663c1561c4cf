//! Construction of a scenario from its file, with checks across keys.

use std::collections::BTreeMap;
use std::path::Path;

use ::toml::Spanned;
use airtcp_basestation::StationConfig;
use airtcp_link::radio::UnknownArq;
use airtcp_link::spec::RateSpec;
use airtcp_link::{LinkSpec, SpecError, Trace};
use airtcp_recovery::Combination;

use super::Source;
use super::file::{ChangeFile, FlowFile, ScenarioFile, StationFile, WaysFile, WireFile};
use crate::check::{self, NOBODY_MARKS, only_for_tcp};
use crate::{App, Change, FlowSpec, Radios, Scenario, Sender, SimError, Topology, Wire};

type Load<'a> = &'a mut dyn FnMut(&str) -> Result<Trace, String>;

pub(super) fn scenario(
    source: &Source<'_>,
    file: ScenarioFile,
    load: Load<'_>,
) -> Result<Scenario, SimError> {
    let mut builder = Builder { source, load, traces: BTreeMap::new() };
    let duration = file.duration.get_ref().0;
    if duration.is_zero() {
        return Err(source.refuse(file.duration.span().start, "the duration must be above zero"));
    }
    let warm_up = file.warm_up.as_ref().map(|time| time.get_ref().0).unwrap_or_default();
    if let Some(place) = file.warm_up.as_ref().filter(|_| warm_up >= duration) {
        let what = format!("the warm-up must be shorter than the duration, {duration:?}");
        return Err(source.refuse(place.span().start, &what));
    }
    let name = file.name.clone().unwrap_or_else(|| stem(source.name));
    let topology = builder.topology(&file)?;
    if file.flow.is_empty() {
        let what = "there are no flows: add a `[[flow]]`, with `congestion = \"reno\"` for example";
        return Err(source.refuse(source.text.trim_end().len(), what));
    }
    let place = |flow: &Spanned<FlowFile>| match &flow.get_ref().start {
        Some(start) if start.get_ref().0 >= duration => start.span().start,
        _ => flow.span().start,
    };
    let places: Vec<_> = file.flow.iter().map(place).collect();
    let flows: Result<_, _> =
        file.flow.into_iter().map(|flow| builder.flow(flow.into_inner(), &topology)).collect();
    let flows = flows?;
    let scenario = Scenario {
        name,
        duration,
        warm_up,
        seed: file.seed,
        topology,
        flows,
        samples: file.samples,
        traces: builder.traces,
    };
    let refuse = |at, error: SimError| source.refuse(at, &error.to_string());
    check::changes(&scenario).map_err(|error| refuse(file.duration.span().start, error))?;
    for (flow, at) in scenario.flows.iter().zip(places) {
        check::flow(&scenario, flow).map_err(|error| refuse(at, error))?;
    }
    Ok(scenario)
}

fn stem(name: &str) -> String {
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or("scenario").to_owned()
}

struct Builder<'a> {
    source: &'a Source<'a>,
    load: Load<'a>,
    traces: BTreeMap<String, Trace>,
}

impl Builder<'_> {
    fn topology(&mut self, file: &ScenarioFile) -> Result<Topology, SimError> {
        match (&file.bottleneck, file.wire.as_slice(), &file.access) {
            (Some(bottleneck), [], access) => {
                let bottleneck = self.wire(bottleneck)?;
                let access = access.as_ref().map_or(Ok(Wire::default()), |wire| self.wire(wire))?;
                Ok(match &file.station {
                    None => Topology::Dumbbell { access, bottleneck },
                    Some(station) => {
                        let station = self.station(station.get_ref())?;
                        let radios = Radios::Shared;
                        Topology::Wireless { access, bottleneck, station, radios }
                    }
                })
            }
            _ if file.station.is_some() => {
                let what = "a `[station]` needs a `[bottleneck]`, the wired Internet, and no `[[wire]]`: \
                            `[bottleneck]` with `forth = \"rate 100mbit delay 20ms limit 1000\"` for example";
                let place = file.station.as_ref().map_or(0, |station| station.span().start);
                Err(self.source.refuse(place, what))
            }
            (None, wires @ [_, ..], None) => Ok(Topology::Chain {
                wires: wires.iter().map(|wire| self.wire(wire)).collect::<Result<_, _>>()?,
            }),
            (None, [], _) => {
                let what = "no network: add a `[bottleneck]` for a dumbbell or `[[wire]]`s for a chain, \
                            with `forth = \"rate 10mbit delay 10ms limit 50\"` for example";
                Err(self.source.refuse(self.source.text.trim_end().len(), what))
            }
            (_, [wire, ..], _) => {
                let what = "use either `[[wire]]`s for a chain, or `[bottleneck]` and `[access]` for a dumbbell";
                Err(self.source.refuse(wire.span().start, what))
            }
        }
    }

    fn station(&self, file: &StationFile) -> Result<StationConfig, SimError> {
        let usual = StationConfig::default();
        let radio = match &file.radio {
            Some(text) => text.get_ref().parse().map_err(|error: SpecError| {
                self.source.refuse_within(text, error.offset, &error.what())
            })?,
            None => usual.radio,
        };
        let arq = match &file.arq {
            Some(text) => text.get_ref().parse().map_err(|error: UnknownArq| {
                self.source.refuse(text.span().start, &error.to_string())
            })?,
            None => usual.arq,
        };
        let number = |given: Option<u64>, usual| given.map_or(usual, |number| number as usize);
        let config = StationConfig {
            radio,
            arq,
            policy: file.policy.as_ref().map_or(usual.policy, |policy| *policy.get_ref()),
            mark: file.mark,
            mark_bits: file.mark_bits.map_or(usual.mark_bits, |bits| bits as u8),
            flows: number(file.flows, usual.flows),
            unproven: number(file.unproven, usual.unproven),
            hold: file.hold.unwrap_or(usual.hold),
            absence: file.absence.unwrap_or(usual.absence),
            cache: file.cache.unwrap_or(usual.cache),
            dupack_delay: file.dupack_delay.unwrap_or(usual.dupack_delay),
            ..usual
        };
        // Each value is valid by itself; the remaining error is a policy that the ARQ mode does not
        // allow.
        let place = file.arq.as_ref().map_or(0, |arq| arq.span().start);
        config.check().map_err(|error| self.source.refuse(place, &error.to_string()))?;
        Ok(config)
    }

    /// Without `back`, a named link defines both directions, and a description applies to both.
    fn wire(&mut self, file: &Spanned<WireFile>) -> Result<Wire, SimError> {
        let (forth, mut back) = match file.get_ref() {
            WireFile::Both(text) => self.pair(&Spanned::new(file.span(), text.clone()))?,
            WireFile::Each(ways) => {
                self.refuse_half_a_link(ways)?;
                self.pair(&ways.forth)?
            }
        };
        if let WireFile::Each(WaysFile { back: Some(text), .. }) = file.get_ref() {
            (_, back) = self.pair(text)?;
        }
        Ok(Wire { forth, back })
    }

    /// Rejects a setting that sets `forth` alone to a named link while the file's `back` would
    /// stay.
    fn refuse_half_a_link(&self, ways: &WaysFile) -> Result<(), SimError> {
        let WaysFile { forth, back: Some(back) } = ways else { return Ok(()) };
        let place = forth.span().start;
        let words = forth.get_ref().trim();
        let named = words.split_whitespace().next().and_then(airtcp_link::named::find);
        let (Some(link), Some(setting), None) =
            (named, self.source.setting_at(place), self.source.setting_at(back.span().start))
        else {
            return Ok(());
        };
        let (wire, name) = (setting.parent(), link.name);
        let what = format!(
            "`{wire}.back` would keep the value of the file: write `{wire}={words}` for both directions of {name}, or set \
             `{wire}.back`, too"
        );
        Err(self.source.refuse(place, &what))
    }

    fn pair(&mut self, text: &Spanned<String>) -> Result<(LinkSpec, LinkSpec), SimError> {
        let pair = airtcp_link::parse_pair(text.get_ref())
            .map_err(|error| self.source.refuse_within(text, error.offset, &error.what()))?;
        if let RateSpec::Trace(file) = &pair.0.rate
            && !self.traces.contains_key(file)
        {
            let trace = (self.load)(file).map_err(|reason| {
                let offset = text.get_ref().find(file.as_str()).unwrap_or(0);
                self.source.refuse_within(text, offset, &format!("trace {file}: {reason}"))
            })?;
            self.traces.insert(file.clone(), trace);
        }
        Ok(pair)
    }

    fn flow(&mut self, file: FlowFile, topology: &Topology) -> Result<FlowSpec, SimError> {
        let app = self.app(&file)?;
        let is_aware = file.mark_aware.as_ref().filter(|aware| *aware.get_ref());
        if let Some(aware) = is_aware.filter(|_| !matches!(topology, Topology::Wireless { .. })) {
            return Err(self.source.refuse(aware.span().start, NOBODY_MARKS));
        }
        let access = match &file.access {
            Some(access) if matches!(topology, Topology::Chain { .. }) => {
                let what = "a chain has no access wires";
                return Err(self.source.refuse(access.span().start, what));
            }
            Some(access) => Some(self.wire(access)?),
            None => None,
        };
        let parts = (
            file.detection.as_ref().map(|name| name.0.as_str()),
            file.congestion.as_ref().map(|name| name.0.as_str()),
            file.judge.as_ref().map(|name| name.0.as_str()),
        );
        let sender = match &file.strategies {
            Some(whole) if parts != (None, None, None) => {
                let what = "`strategies` includes `detection`, `congestion` and `judge`: remove them, or set \
                            `strategies` anew, as in --set flow.0.strategies=rack/reno";
                return Err(self.source.refuse(whole.span().start, what));
            }
            Some(whole) => whole.get_ref().0.0.clone(),
            None => Combination::from_parts(parts.0, parts.1, parts.2).unwrap_or_default().into(),
        };
        self.refuse_of_tcp(&file, &sender)?;
        let changes: Result<_, _> =
            file.change.iter().map(|change| self.change(change.get_ref())).collect();
        let changes = changes?;
        let usual = FlowSpec::new(sender);
        let mut profile = file.profile.map_or(usual.profile, |profile| profile.into_inner().0);
        if let Some(prr) = file.prr {
            profile.proportional_rate_reduction = prr.into_inner();
        }
        if let Some(floor) = file.min_rto {
            profile.rto = profile.rto.with_floor(floor.into_inner().0);
        }
        if let Some(window) = file.initial_window {
            profile.initial_window = window.into_inner().count();
        }
        if let Some(most) = file.cwnd_clamp {
            profile.cwnd_clamp = Some(most.into_inner().count());
        }
        let or = |given: Option<Spanned<bool>>, usual| given.map_or(usual, Spanned::into_inner);
        Ok(FlowSpec {
            name: file.name.unwrap_or_else(|| usual.name.clone()),
            count: file.count as u32,
            profile,
            way: file.way,
            app,
            start: file.start.map_or(usual.start, |start| start.into_inner().0),
            stagger: file.stagger,
            stop: file.stop,
            changes,
            wires: file.wires.map(|[first, last]| (first.number(), last.number())),
            mtu: file.mtu as u16,
            timestamps: or(file.timestamps, usual.timestamps),
            sack: or(file.sack, usual.sack),
            pacing: or(file.pacing, usual.pacing),
            path_memory: or(file.path_memory, usual.path_memory),
            receive_buffer: file.receive_buffer,
            send_buffer: file.send_buffer,
            wake_up_delay: file.wake_up_delay,
            mark_aware: is_aware.is_some(),
            access,
            ..usual
        })
    }

    fn change(&self, file: &ChangeFile) -> Result<Change, SimError> {
        match &file.strategies.get_ref().0.0 {
            Sender::Tcp(combination) => {
                Ok(Change { at: file.at, combination: combination.clone() })
            }
            Sender::Rrtp(_) | Sender::Udp(_) => {
                let what = "a flow cannot change its transport: use strategies of TCP";
                Err(self.source.refuse(file.strategies.span().start, what))
            }
        }
    }

    /// Rejects options of TCP for other transports, even with their default value.
    fn refuse_of_tcp(&self, file: &FlowFile, sender: &Sender) -> Result<(), SimError> {
        let given = [
            ("profile", file.profile.as_ref().map(Spanned::span)),
            ("prr", file.prr.as_ref().map(Spanned::span)),
            ("min_rto", file.min_rto.as_ref().map(Spanned::span)),
            ("initial_window", file.initial_window.as_ref().map(Spanned::span)),
            ("cwnd_clamp", file.cwnd_clamp.as_ref().map(Spanned::span)),
            ("timestamps", file.timestamps.as_ref().map(Spanned::span)),
            ("sack", file.sack.as_ref().map(Spanned::span)),
            ("pacing", file.pacing.as_ref().map(Spanned::span)),
            ("path_memory", file.path_memory.as_ref().map(Spanned::span)),
            ("mark_aware", file.mark_aware.as_ref().map(Spanned::span)),
            ("change", file.change.first().map(Spanned::span)),
        ];
        let first = given.into_iter().find_map(|(key, place)| Some((key, place?)));
        match (sender.transport(), first) {
            (Some(transport), Some((key, place))) => {
                Err(self.source.refuse(place.start, &only_for_tcp(key, transport)))
            }
            _ => Ok(()),
        }
    }

    fn app(&self, file: &FlowFile) -> Result<App, SimError> {
        let places = [
            file.bulk.as_ref().map(Spanned::span),
            file.request_response.as_ref().map(Spanned::span),
            file.short_flows.as_ref().map(Spanned::span),
            file.ping_pong.as_ref().map(Spanned::span),
        ];
        let mut given: Vec<_> = places.into_iter().flatten().map(|span| span.start).collect();
        given.sort_unstable();
        if let [_, second, ..] = given.as_slice() {
            let what =
                "a flow has one application: bulk, request_response, short_flows or ping_pong";
            return Err(self.source.refuse(*second, what));
        }
        if let Some(app) = file.request_response.as_ref().map(Spanned::get_ref) {
            let (request, response) = (app.request, app.response);
            return Ok(App::RequestResponse {
                request,
                response,
                think: app.think,
                count: app.count,
            });
        }
        if let Some(app) = file.short_flows.as_ref().map(Spanned::get_ref) {
            let largest = app.largest.as_ref().map_or(app.smallest, |size| size.get_ref().0);
            if let Some(place) = app.largest.as_ref().filter(|_| largest < app.smallest) {
                let what = "`largest` is below `smallest`";
                return Err(self.source.refuse(place.span().start, what));
            }
            let size = (app.smallest, largest);
            return Ok(App::ShortFlows {
                size,
                gap: app.gap,
                pareto: app.pareto,
                users: app.users as u32,
            });
        }
        if let Some(app) = file.ping_pong.as_ref().map(Spanned::get_ref) {
            return Ok(App::PingPong { size: app.size, count: app.count });
        }
        Ok(App::Bulk { size: file.bulk.as_ref().and_then(|bulk| bulk.get_ref().size) })
    }
}
