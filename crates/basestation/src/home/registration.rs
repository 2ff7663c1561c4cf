//! Registration requests (RFC 5944 section 3.8) and their replies.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airtcp_types::Instant;
use airtcp_wire::mobility::{
    Ends, Extension, Extensions, Message, Reply, Request, code, flag, push_hint,
};

use super::binding::{Answer, Binding, Pending};
use super::config::is_host;
use super::revocation::bytes_of;
use super::{HomeAgent, Key, PREVIOUS};

/// The maximum distance of a request's time from the agent's, in units of timestamps (RFC 5944
/// section 5.7.1).
const TOLERANCE: u64 = 7 << 32;

/// How long a reply waits for the flow lists of the station that the mobile left.
const WAIT: Duration = Duration::from_millis(250);

/// A request that is refused.
#[derive(Clone, Copy)]
struct Refused {
    code: u8,
    /// Whether the mobile, and the station that relays the request, have sent it.
    is_authentic: bool,
}

impl HomeAgent {
    pub(super) fn on_request(
        &mut self,
        now: Instant,
        from: SocketAddr,
        request: &Request,
        extensions: Extensions<'_>,
    ) {
        self.counters.requests += 1;
        let place = self.by_address.get(&request.home).filter(|_| is_host(from.ip()));
        let Some(&place) = place else {
            // Without a key for the reply, or a source that could receive it.
            self.counters.unknown += 1;
            return;
        };
        let station = self.stations.get(&request.care_of).copied();
        let key = &self.config.mobiles[place].key;
        let relay = station.map(|place| &self.config.stations[place].key);
        let refused = |is_authentic| move |code| Refused { code, is_authentic };
        let checked = check_authentication(extensions, key, relay)
            .map_err(refused(false))
            .and_then(|()| self.check(now, place, from, request).map_err(refused(true)));
        match checked {
            Err(refused) => return self.refuse(now, place, from, request, refused),
            Ok(true) => return self.repeat(now, place, from, request, station),
            Ok(false) => {}
        }
        self.counters.accepted += 1;
        let lifetime = request.lifetime.min(self.config.lifetime.as_secs() as u16);
        let binding = match lifetime {
            // RFC 5944 section 3.8.2.2: only the care-of address that the request names.
            0 => self.mobiles[place].latest().copied().filter(|of| !ends(request, of)),
            _ => Some(Binding {
                care_of: request.care_of,
                station,
                port: from.port(),
                lifetime,
                until: now + Duration::from_secs(lifetime.into()),
                mtu: self.config.mtu,
            }),
        };
        self.changed += 1;
        let answer = answer(from, request, lifetime, station);
        let mobile = &mut self.mobiles[place];
        mobile.last = Some(request.identification);
        mobile.pending = Some(Pending { number: self.changed, binding, answer });
    }

    /// Checks an authentic request. Returns whether it is the last accepted one, or the code of the
    /// refusal.
    fn check(
        &self,
        now: Instant,
        place: usize,
        from: SocketAddr,
        request: &Request,
    ) -> Result<bool, u8> {
        if request.flags & flag::REVERSE != 0 {
            return Err(code::REVERSE_TUNNEL);
        }
        if request.flags & (flag::MINIMAL | flag::GRE) != 0 {
            return Err(code::ENCAPSULATION);
        }
        if Some(request.home_agent) != self.config.own(request.home.is_ipv6()) {
            return Err(code::HOME_AGENT);
        }
        // Another source is that of a NAT. It could also be that of a replay, to which the reply
        // would go.
        if from.ip() != request.care_of {
            return Err(code::PROHIBITED);
        }
        let returns = request.lifetime == 0 && request.care_of == request.home;
        if !returns && !self.is_away(request.care_of) {
            return Err(code::POORLY_FORMED);
        }
        let difference = request.identification.wrapping_sub(self.time_of(now, place)) as i64;
        if difference.unsigned_abs() > TOLERANCE {
            return Err(code::IDENTIFICATION);
        }
        let mobile = &self.mobiles[place];
        match mobile.last {
            Some(last) if request.identification == last => {
                let latest = mobile.latest();
                let is_same = match request.lifetime {
                    0 => latest.is_none_or(|binding| !ends(request, binding)),
                    _ => latest.is_some_and(|binding| binding.care_of == request.care_of),
                };
                if is_same { Ok(true) } else { Err(code::IDENTIFICATION) }
            }
            Some(last) if !is_after(request.identification, last) => Err(code::IDENTIFICATION),
            _ => Ok(false),
        }
    }

    /// Whether packets can be sent to a care-of address: the tunnel must not lead back to the agent.
    pub(super) fn is_away(&self, care_of: IpAddr) -> bool {
        is_host(care_of)
            && Some(care_of) != self.config.own(care_of.is_ipv6())
            && !self.by_address.contains_key(&care_of)
    }

    /// The time near which the identification of a mobile's next request has to be: that of the agent.
    /// If the clock was set back since the last accepted request, it is one second after that: the
    /// mobile could not register before the clock has caught up.
    fn time_of(&self, now: Instant, place: usize) -> u64 {
        let time = self.time(now);
        match self.mobiles[place].last {
            Some(last) if is_after(last, time.wrapping_add(TOLERANCE)) => {
                last.wrapping_add(1 << 32)
            }
            _ => time,
        }
    }

    /// Answers the last accepted request again. If it is not stored yet, its reply will come.
    fn repeat(
        &mut self,
        now: Instant,
        place: usize,
        from: SocketAddr,
        request: &Request,
        station: Option<usize>,
    ) {
        self.counters.repeated += 1;
        if self.mobiles[place].pending.is_some() {
            return;
        }
        if !self.mobiles[place].answers.take(now) {
            self.counters.rate_limited += 1;
            return;
        }
        let before = self.mobiles[place].deadline();
        let mobile = &mut self.mobiles[place];
        let binding = mobile.binding.as_ref().filter(|_| request.lifetime > 0);
        let lifetime = binding.map_or(0, |binding| binding.lifetime);
        mobile.ask_again(now);
        mobile.reply = None;
        self.schedule(place, before);
        self.reply(place, &answer(from, request, lifetime, station));
        self.on_deadline(now, place);
    }

    /// Sends a refusal, authenticated for the mobile and for a station that relays it.
    fn refuse(
        &mut self,
        now: Instant,
        place: usize,
        from: SocketAddr,
        request: &Request,
        Refused { code, is_authentic }: Refused,
    ) {
        *match code {
            code::MOBILE_AUTHENTICATION | code::FOREIGN_AUTHENTICATION => {
                &mut self.counters.unauthenticated
            }
            code::IDENTIFICATION => &mut self.counters.replayed,
            _ => &mut self.counters.refused,
        } += 1;
        // Strangers cannot use up the answers to a mobile.
        let may = match is_authentic {
            true => self.mobiles[place].answers.take(now),
            false => self.strangers.take(now, from.ip()),
        };
        if !may {
            self.counters.rate_limited += 1;
            return;
        }
        let identification = match code {
            // RFC 5944 section 5.7.1: the agent's time, by which the mobile sets its own.
            code::IDENTIFICATION => {
                self.time_of(now, place) & !0xffff_ffff | request.identification & 0xffff_ffff
            }
            _ => request.identification,
        };
        let station = self.stations.get(&from.ip()).copied();
        self.reply(place, &Answer { to: from, code, lifetime: 0, identification, station });
    }

    /// Makes a stored request the registration of its mobile.
    pub(super) fn commit(&mut self, now: Instant, place: usize) {
        let before = self.mobiles[place].deadline();
        let Some((answer, has_left)) = self.mobiles[place].commit(now) else { return };
        let is_relayed = answer.station.is_some();
        let at = if has_left && is_relayed { now + WAIT } else { now };
        self.mobiles[place].reply = Some((at, answer));
        self.schedule(place, before);
        self.on_deadline(now, place);
    }

    /// Does what is due for a home address.
    pub(super) fn on_deadline(&mut self, now: Instant, place: usize) {
        let before = self.mobiles[place].deadline();
        if self.mobiles[place].binding.is_some_and(|binding| binding.until <= now) {
            self.counters.expired += 1;
            let mobile = &mut self.mobiles[place];
            (mobile.binding, mobile.reply) = (None, None);
            mobile.left.clear();
        }
        self.revoke(now, place);
        if self.mobiles[place].reply.is_some_and(|(at, _)| at <= now) {
            self.send_waiting_reply(place);
        }
        self.schedule(place, before);
    }

    /// Sends the reply that waits for flow lists, if there is one.
    pub(super) fn send_waiting_reply(&mut self, place: usize) {
        if let Some((_, answer)) = self.mobiles[place].reply.take() {
            self.reply(place, &answer);
        }
    }

    fn reply(&mut self, place: usize, answer: &Answer) {
        let mut message = self.reply_to(place, answer);
        self.config.mobiles[place].key.sign(&mut message, Ends::MobileHome);
        if let Some(station) = answer.station {
            if let Some(previous) = self.previous(place, answer) {
                push_hint(&mut message, PREVIOUS, &bytes_of(previous));
            }
            self.config.stations[station].key.sign(&mut message, Ends::ForeignHome);
        }
        self.send_message(answer.to, &message);
    }

    /// Returns the address of the station that the mobile left by the request of a reply, or shortly
    /// before: the reply to the first request may have been lost.
    fn previous(&self, place: usize, answer: &Answer) -> Option<IpAddr> {
        let mut left = self.mobiles[place].left.iter();
        let left = left
            .rfind(|left| answer.identification.wrapping_sub(left.identification) <= TOLERANCE)?;
        Some(self.config.stations[left.station].address).filter(|_| answer.lifetime > 0)
    }

    /// Returns the fields of a reply.
    pub(super) fn reply_to(&self, place: usize, answer: &Answer) -> Vec<u8> {
        let home = self.config.mobiles[place].address;
        let home_agent = self.config.own(home.is_ipv6()).unwrap_or(home);
        let Answer { code, lifetime, identification, .. } = *answer;
        Message::Reply(Reply { code, lifetime, home, home_agent, identification }).emit()
    }
}

/// The reply to an accepted request.
const fn answer(
    to: SocketAddr,
    request: &Request,
    lifetime: u16,
    station: Option<usize>,
) -> Answer {
    let code = match request.flags & flag::SIMULTANEOUS {
        0 => code::ACCEPTED,
        _ => code::NO_SIMULTANEOUS,
    };
    Answer { to, code, lifetime, identification: request.identification, station }
}

/// Checks that a request ends with the authenticator of the mobile and, if a station relays it, that
/// of the station. Returns the code of the refusal.
fn check_authentication(
    extensions: Extensions<'_>,
    mobile: &Key,
    station: Option<&Key>,
) -> Result<(), u8> {
    let (mut is_mobiles, mut is_stations) = (false, false);
    for extension in extensions {
        match extension {
            // Nothing may follow what covers the whole message.
            _ if is_stations => return Err(code::POORLY_FORMED),
            Extension::Authentication(of) if of.ends == Ends::MobileHome => {
                if is_mobiles {
                    return Err(code::POORLY_FORMED);
                }
                if !mobile.verifies(&of) {
                    return Err(code::MOBILE_AUTHENTICATION);
                }
                is_mobiles = true;
            }
            Extension::Authentication(of) if of.ends == Ends::ForeignHome => {
                let is_valid = station.is_some_and(|key| key.verifies(&of));
                match (is_mobiles, is_valid) {
                    (false, _) => return Err(code::MOBILE_AUTHENTICATION),
                    (true, false) => return Err(code::FOREIGN_AUTHENTICATION),
                    (true, true) => is_stations = true,
                }
            }
            // A station adds its extensions after the mobile's; without a station nobody does.
            _ if is_mobiles && station.is_none() => return Err(code::POORLY_FORMED),
            _ => {}
        }
    }
    match (is_mobiles, station.is_some() == is_stations) {
        (true, true) => Ok(()),
        (true, false) => Err(code::FOREIGN_AUTHENTICATION),
        (false, _) => Err(code::MOBILE_AUTHENTICATION),
    }
}

/// Whether a request with lifetime 0 ends a registration: it names its care-of address, or as that of
/// a mobile at home, the home address.
fn ends(request: &Request, binding: &Binding) -> bool {
    request.care_of == request.home || request.care_of == binding.care_of
}

/// Whether one timestamp is later than another, over the wrap of 2036.
pub(crate) const fn is_after(one: u64, other: u64) -> bool {
    one.wrapping_sub(other) as i64 > 0
}
