//! Settings of a base station: flags, and a file with the same keys.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use airtcp_basestation::station::{Mark, MobileConfig, Prefix, addresses};
use airtcp_basestation::{Policy, StationConfig};
use airtcp_link::RadioSpec;
use airtcp_link::radio::Arq;
use airtcp_types::ByteCount;
use clap::Args;
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::handoff::{HandoffPlan, HandoffSettings};
use crate::output::Mistake;
use crate::{live, settings, value};

/// The maximum number of flows of a flag.
const FLOWS: usize = 1_000_000_000;

/// Flags, and the keys of a file. A flag takes precedence over its key; defaults fill the rest.
#[derive(Args, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Settings {
    /// The TUN device on the wired side, for example tun0
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    wired: Option<String>,
    /// The TUN device on the wireless side, for example tun1
    #[arg(long, value_name = "TUN", value_parser = value::tun)]
    #[serde(deserialize_with = "settings::device")]
    wireless: Option<String>,
    /// Emulated radio between the two devices, for example "error 20%" ("": 802.11b at 11 Mbit/s
    /// without errors); without this option packets are only forwarded
    #[arg(long, value_name = "SPEC", value_parser = value::parsed::<RadioSpec>)]
    #[serde(deserialize_with = "settings::written")]
    radio: Option<RadioSpec>,
    /// Treatment of TCP flows: plain, tcp-ecn, snoop or delayed-dupack [default: plain]
    #[arg(long, value_name = "POLICY", value_parser = named::<Policy>)]
    policy: Option<Policy>,
    /// Link-layer retransmission: off, mac, mac+link or head [default: mac+link]
    #[arg(long, value_name = "ARQ", value_parser = value::parsed::<Arq>)]
    #[serde(deserialize_with = "settings::written")]
    arq: Option<Arq>,
    /// Marks of tcp-ecn: paper, ce or both [default: both]
    #[arg(long, value_name = "MARK", value_parser = named::<Mark>)]
    mark: Option<Mark>,
    /// Mask of the paper's mark within the low four bits of byte 12 of the TCP header, 1 to 15
    /// [default: 8]
    #[arg(long, value_name = "BITS", allow_negative_numbers = true, value_parser = value::whole(1_u8, 15, "--mark-bits 8"))]
    mark_bits: Option<u8>,
    /// Maximum number of flows in the table [default: 65536]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = value::whole(1_usize, FLOWS, "--flows 65536"))]
    flows: Option<usize>,
    /// Maximum number of flows that the mobile has not answered yet [default: 4096]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = value::whole(1_usize, FLOWS, "--unproven 4096"))]
    unproven: Option<usize>,
    /// Buffer for packets while the mobile is out of reach [default: 4MiB]
    #[arg(long, value_name = "BYTES", value_parser = value::size)]
    #[serde(deserialize_with = "settings::size")]
    hold: Option<ByteCount>,
    /// Maximum number of packets held for each mobile [default: only --hold is a limit]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = value::whole(1_usize, FLOWS, "--hold-packets 1000"))]
    hold_packets: Option<usize>,
    /// Time out of reach after which the flows of the mobile are dropped [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds)]
    #[serde(deserialize_with = "settings::seconds")]
    absence: Option<Duration>,
    /// Networks of the mobiles, for example 192.0.2.0/24,2001:db8::/64: packets from the wireless
    /// side with another source are dropped [default: any source passes]
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', value_parser = value::parsed::<Prefix>)]
    mobiles: Option<Vec<Prefix>>,
    /// Mobiles with names; only in a file
    #[arg(skip)]
    mobile: Vec<MobileSettings>,
    /// Other stations and the home agent; only in a file
    #[arg(skip)]
    handoff: Option<HandoffSettings>,
    /// Maximum number of mobiles that become known when they send their first packet, and have then
    /// their own queue, reach, limits and counters [default: 0]
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true, value_parser = value::whole(0_usize, 65_534, "--heard 20"))]
    heard: Option<usize>,
    /// Size of snoop's cache, or of the ACKs that delayed-dupack delays [default: 4MiB]
    #[arg(long, value_name = "BYTES", value_parser = value::size)]
    #[serde(deserialize_with = "settings::size")]
    cache: Option<ByteCount>,
    /// Time for which delayed-dupack delays the third and later duplicate ACKs of a loss
    /// [default: 0.15]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds)]
    #[serde(deserialize_with = "settings::seconds")]
    dupack_delay: Option<Duration>,
    /// Open the devices with offload: accept super-segments and incomplete checksums from the
    /// kernel, and segment them before the station [default: only without --radio]
    #[arg(long, num_args = 0, default_missing_value = "true")]
    offload: Option<bool>,
    /// Open the devices without offload; in a file, `offload = false`
    #[arg(long, conflicts_with = "offload")]
    #[serde(skip)]
    no_offload: bool,
    /// Keep the devices at exit, so that a restart does not interrupt flows
    #[arg(long)]
    persist: bool,
    /// Listen for `basestation ctl` on this socket
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR/metrics over the kernel's TCP, for example
    /// 127.0.0.1:9465
    #[arg(long, value_name = "ADDR", value_parser = value::socket)]
    #[serde(deserialize_with = "settings::socket")]
    metrics: Option<SocketAddr>,
    /// Show flows, rates and the radio on a page at http://ADDR/, over the kernel's TCP: a port of
    /// 127.0.0.1, or ADDRESS:PORT. Without login
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    #[serde(deserialize_with = "settings::live")]
    live: Option<SocketAddr>,
    /// Write a capture, an event log and pictures to this directory
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Print the counters as JSON, one line at a time
    #[arg(long)]
    json: bool,
}

/// A `[[mobile]]` of the file.
#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MobileSettings {
    name: String,
    #[serde(deserialize_with = "addresses")]
    addresses: Vec<Prefix>,
    #[serde(default)]
    radio: String,
    #[serde(default, deserialize_with = "settings::size")]
    hold: Option<ByteCount>,
    #[serde(default)]
    hold_packets: Option<usize>,
}

impl From<MobileSettings> for MobileConfig {
    fn from(mobile: MobileSettings) -> Self {
        let MobileSettings { name, addresses, radio, hold, hold_packets } = mobile;
        Self { name, addresses, radio, hold, hold_packets }
    }
}

/// The validated settings.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plan {
    /// The devices on the wired and on the wireless side.
    pub(super) devices: [String; 2],
    /// The settings of the station; `None` for a bridge.
    pub(super) station: Option<StationConfig>,
    /// The settings of the handoff; `None` for a station alone.
    pub(super) handoff: Option<HandoffPlan>,
    pub(super) offload: bool,
    pub(super) persist: bool,
    pub(super) control: Option<PathBuf>,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) live: Option<SocketAddr>,
    pub(super) trace: Option<PathBuf>,
    pub(super) json: bool,
}

settings::merge!(Settings:
    wired, wireless, radio, policy, arq, mark, mark_bits, flows, unproven, hold, hold_packets,
    absence, mobiles, mobile, handoff, heard, cache, dupack_delay, offload, no_offload, persist, control,
    metrics, live, trace, json,
);

impl Settings {
    /// Validates the settings.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another; a key cannot be read.
    pub(super) fn plan(self) -> anyhow::Result<Plan> {
        let only_with_radio = [
            ("policy", self.policy.is_some()),
            ("arq", self.arq.is_some()),
            ("mark", self.mark.is_some()),
            ("mark-bits", self.mark_bits.is_some()),
            ("flows", self.flows.is_some()),
            ("unproven", self.unproven.is_some()),
            ("hold", self.hold.is_some()),
            ("hold-packets", self.hold_packets.is_some()),
            ("absence", self.absence.is_some()),
            ("mobiles", self.mobiles.is_some()),
            ("mobile", !self.mobile.is_empty()),
            ("handoff", self.handoff.is_some()),
            ("heard", self.heard.is_some()),
            ("cache", self.cache.is_some()),
            ("dupack-delay", self.dupack_delay.is_some()),
            ("control", self.control.is_some()),
        ];
        let alone = only_with_radio.into_iter().find(|(_, is_said)| *is_said);
        let default = StationConfig::default();
        let has_radio = self.radio.is_some();
        let has_no_mobiles = self.mobiles.as_ref().is_some_and(Vec::is_empty);
        let station = StationConfig {
            radio: self.radio.unwrap_or(default.radio),
            arq: self.arq.unwrap_or(default.arq),
            policy: self.policy.unwrap_or(default.policy),
            mark: self.mark.unwrap_or(default.mark),
            mark_bits: self.mark_bits.unwrap_or(default.mark_bits),
            flows: self.flows.unwrap_or(default.flows),
            unproven: self.unproven.unwrap_or(default.unproven),
            hold: self.hold.unwrap_or(default.hold),
            hold_packets: self.hold_packets,
            absence: self.absence.unwrap_or(default.absence),
            mobiles: self.mobiles.unwrap_or(default.mobiles),
            mobile: self.mobile.into_iter().map(MobileConfig::from).collect(),
            heard: self.heard.unwrap_or(default.heard),
            cache: self.cache.unwrap_or(default.cache),
            dupack_delay: self.dupack_delay.unwrap_or(default.dupack_delay),
        };
        // Checked before the radio: these values would be invalid with a radio, too.
        station.check().map_err(|error| Mistake::new(error.to_string()))?;
        if has_no_mobiles {
            return Err(Mistake::new(
                "mobiles is empty: list the networks of the mobiles, or omit it to accept any source"
                    .to_owned(),
            )
            .into());
        }
        if let (false, Some((name, _))) = (has_radio, alone) {
            return Err(Mistake::new(format!(
                "{name} needs --radio: add it, for example --radio \"error 20%\", or --radio \"\" for one without errors"
            ))
            .into());
        }
        let station = has_radio.then_some(station);
        let (Some(wired), Some(wireless)) = (self.wired, self.wireless) else {
            return Err(Mistake::new(
                "--wired and --wireless name two TUN devices; for example: basestation --wired tun0 --wireless tun1 \
                 --radio \"error 20%\" --policy tcp-ecn"
                    .to_owned(),
            )
            .into());
        };
        if wired == wireless {
            return Err(Mistake::new(format!(
                "--wired and --wireless are both `{wired}`: name two devices, for example `basestation --wired tun0 \
                 --wireless tun1`"
            ))
            .into());
        }
        let handoff = self.handoff.map(HandoffSettings::plan).transpose()?;
        let devices = [wired, wireless];
        // A station marks and drops single packets, and therefore needs them unmerged.
        let offload = !self.no_offload && self.offload.unwrap_or(station.is_none());
        let Self { persist, control, metrics, live, trace, json, .. } = self;
        Ok(Plan {
            devices,
            station,
            handoff,
            offload,
            persist,
            control,
            metrics,
            live,
            trace,
            json,
        })
    }
}

/// Parses a value with the name that it has in a file.
fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let name: StrDeserializer<'_, serde::de::value::Error> = text.into_deserializer();
    T::deserialize(name).map_err(|error| {
        let what = error.to_string();
        settings::plain(&what) + &airtcp_types::suggestion(&what)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use super::*;
    use crate::settings::Merge;
    use crate::station::home::settings::tests::page;

    fn file(text: &str) -> anyhow::Result<Settings> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        settings::read(file.path())
    }

    fn refused(text: &str) -> String {
        let error = file(text).map_err(|error| error.to_string());
        error.and_then(|settings| settings.plan().map_err(|error| error.to_string())).unwrap_err()
    }

    const WHOLE: &str = r#"
        wired = "tun0"
        wireless = "tun1"
        radio = "error 20% tries 4"
        policy = "tcp-ecn"
        arq = "mac"
        mark = "paper"
        mark-bits = 4
        flows = 10
        unproven = 11
        hold = "1MiB"
        hold-packets = 500
        absence = 60
        mobiles = ["192.0.2.0/24", "2001:db8::/64"]
        cache = "2MiB"
        dupack-delay = 0.05
        offload = true
        persist = true
        control = "/run/a.sock"
        metrics = "127.0.0.1:9465"
        live = "8080"
        trace = "dir"
        json = true
        heard = 20
        [[mobile]]
        name = "car"
        addresses = ["192.0.2.7", "2001:db8::/64"]
        radio = "error 5%"
        hold = "64KiB"
        [[mobile]]
        name = "phone"
        addresses = ["192.0.2.8"]
        hold-packets = 100
    "#;

    #[test]
    fn a_file_has_the_keys_of_the_flags() {
        let plan = file(WHOLE).unwrap().plan().unwrap();
        let station = plan.station.unwrap();
        assert_eq!(plan.devices, ["tun0", "tun1"]);
        assert_eq!((station.radio.tries, station.arq), (4, Arq::Mac));
        assert_eq!(
            (station.policy, station.mark, station.mark_bits),
            (Policy::TcpEcn, Mark::Paper, 4)
        );
        assert_eq!((station.flows, station.unproven), (10, 11));
        assert_eq!((station.absence, station.mobiles.len()), (Duration::from_secs(60), 2));
        assert_eq!((station.hold, station.cache), (ByteCount::from_mib(1), ByteCount::from_mib(2)));
        assert_eq!((station.hold_packets, station.heard), (Some(500), 20));
        assert_eq!(station.dupack_delay, Duration::from_millis(50));
        let [car, phone] = &station.mobile[..] else { panic!("{:?}", station.mobile) };
        assert_eq!((car.name.as_str(), car.addresses.len()), ("car", 2));
        assert_eq!((car.radio.as_str(), car.hold), ("error 5%", Some(ByteCount::from_kib(64))));
        assert_eq!((phone.name.as_str(), phone.hold_packets), ("phone", Some(100)));
        assert_eq!((plan.offload, plan.persist, plan.json), (true, true, true));
        assert_eq!(plan.control.as_deref(), Some(Path::new("/run/a.sock")));
        assert_eq!(plan.metrics, Some(SocketAddr::from(([127, 0, 0, 1], 9465))));
        assert_eq!(plan.live, Some(SocketAddr::from(([127, 0, 0, 1], 8080))));
        assert_eq!(plan.trace.as_deref(), Some(Path::new("dir")));
    }

    #[test]
    fn the_settings_of_the_page_of_the_handoff_are_understood() {
        let (directory, text) = page("handoff.md", ["north", "stations"]);
        let plan = |text: &str| {
            let path = directory.path().join("north.toml");
            std::fs::write(&path, text).unwrap();
            settings::read::<Settings>(&path)?.plan()
        };
        let good = plan(&text).unwrap();
        let handoff = good.handoff.unwrap();
        assert_eq!((handoff.relay.addresses.len(), handoff.relay.home_agents.len()), (2, 2));
        assert_eq!((handoff.handoff.peers.len(), handoff.relay.visitors), (2, 1_024));
        assert_eq!(good.station.unwrap().mobile[0].name, "van");
        for (from, to, expected) in [
            ("radio = \"\"", "", "needs --radio"),
            ("[[handoff.peer]]", "[[handoff.mobile]]", "there is no [[handoff.peer]]"),
            ("[[handoff.home-agent]]", "[[handoff.mobile]]", "no [[handoff.home-agent]]"),
            ("\"198.51.100.2\"", "\"192.0.2.1\"", "192.0.2.1 is given twice"),
            ("spi = 500", "spi = 5", "south: the SPI 5 is reserved"),
            ("[handoff]\n", "[handoff]\nvisitors = 0\n", "1 to 65536"),
            ("[handoff]\n", "[handoff]\nport = 1\n", "unknown key `port`"),
        ] {
            assert!(text.contains(from), "{from}");
            let said = format!("{:#}", plan(&text.replacen(from, to, 1)).unwrap_err());
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn an_empty_list_of_mobiles_is_refused() {
        let text = "wired = \"tun0\"\nwireless = \"tun1\"\nradio = \"\"\nmobiles = []";
        let empty = refused(text);
        assert!(empty.contains("mobiles is empty: list the networks"), "{empty}");
    }

    #[test]
    fn a_bridge_offloads_by_default_and_a_station_does_not() {
        let two = "wired = \"tun0\"\nwireless = \"tun1\"\n";
        let offload = |more: &str| file(&format!("{two}{more}")).unwrap().plan().unwrap().offload;
        assert!(offload("") && offload("radio = \"\"\noffload = true"));
        assert!(!offload("offload = false") && !offload("radio = \"\""));
        let flag = Settings { no_offload: true, ..Settings::default() };
        assert!(!flag.or(file(WHOLE).unwrap()).plan().unwrap().offload);
        let flag = Settings { offload: Some(true), ..Settings::default() };
        let file = file(&format!("{two}offload = false")).unwrap();
        assert!(flag.or(file).plan().unwrap().offload);
    }

    #[test]
    fn a_flag_goes_before_the_file() {
        let flags = Settings { policy: Some(Policy::Snoop), flows: Some(7), ..Settings::default() };
        let station = flags.or(file(WHOLE).unwrap()).plan().unwrap().station.unwrap();
        assert_eq!((station.policy, station.flows, station.unproven), (Policy::Snoop, 7, 11));
    }

    #[test]
    fn a_mistake_in_a_file_names_its_place() {
        let unknown = refused("wired = \"tun0\"\npolcy = \"plain\"\n");
        assert!(unknown.contains(":2:1: unknown key `polcy`"), "{unknown}");
        assert!(unknown.ends_with("; did you mean `policy`?"), "{unknown}");
        let policy = refused("\npolicy = \"ecn\"");
        assert!(policy.contains(":2:10: unknown value `ecn`, expected one of `plain`"), "{policy}");
        let misspelt = refused("policy = \"snop\"");
        assert!(misspelt.ends_with("; did you mean `snoop`?"), "{misspelt}");
        let misspelt = refused("policy = \"delayed-dupacks\"");
        assert!(misspelt.ends_with("; did you mean `delayed-dupack`?"), "{misspelt}");
        let radio = refused("radio = \"error 20\"");
        assert!(radio.contains(":1:9: at byte 6, `20`"), "{radio}");
        let size = refused("hold = \"much\"");
        assert!(size.contains("a size is 1 to"), "{size}");
        let absence = refused("absence = 0");
        assert!(absence.contains(":1:11: expected a number of seconds from 0.001 to"), "{absence}");
        let mobiles = refused("mobiles = [\"192.0.2.1\"]");
        assert!(mobiles.contains("`192.0.2.1` is not a network"), "{mobiles}");
        let start = "[[mobile]]\nname = \"a\"\naddresses = ";
        let address = refused(&format!("{start}[\"192.0.2\"]"));
        assert!(address.contains("`192.0.2` is not a network"), "{address}");
        let key = refused(&format!("{start}[\"192.0.2.1\"]\nholds = \"1MiB\""));
        assert!(key.contains(":4:1: unknown key `holds`"), "{key}");
        let port = refused("metrics = \"9465\"");
        assert!(port.contains(":1:11: expected ADDRESS:PORT"), "{port}");
        let live = refused("live = \"0.0.0.0:80\"");
        assert!(live.contains(":1:8: 0.0.0.0:80 is every address of this machine"), "{live}");
        let number = refused("live = 8080");
        assert!(number.contains("write live = \"8080\""), "{number}");
        let bare = refused("hold = 4 # MiB");
        assert!(bare.contains("expected a text in quotes; write hold = \"4\""), "{bare}");
        let word = refused("\npolicy = tcp-ecn");
        assert!(
            word.contains(":2:10: ") && word.ends_with("; write policy = \"tcp-ecn\""),
            "{word}"
        );
        let name = refused("wired = \"a/b\"");
        assert!(name.contains("a device's name has"), "{name}");
    }

    #[test]
    fn an_unknown_name_of_a_flag_lists_the_names_and_the_nearest() {
        assert_eq!(
            named::<Policy>("TCP_ECN").unwrap_err(),
            "unknown value `TCP_ECN`, expected one of `plain`, `tcp-ecn`, `snoop`, `delayed-dupack`; did you mean `tcp-ecn`?"
        );
        let mark = named::<Mark>("all").unwrap_err();
        assert_eq!(mark, "unknown value `all`, expected one of `paper`, `ce`, `both`");
        assert_eq!(named::<Policy>("snoop"), Ok(Policy::Snoop));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let two = "wired = \"tun0\"\nwireless = \"tun1\"\n";
        let alone = refused(&format!("{two}policy = \"tcp-ecn\""));
        assert!(alone.contains("policy needs --radio"), "{alone}");
        let mobile = "[[mobile]]\nname = \"a\"\naddresses = [\"192.0.2.7\"]\n";
        let mobiles = refused(&format!("{two}radio = \"\"\n{mobile}{mobile}"));
        assert!(mobiles.contains("mobile `a`: two mobiles have this name"), "{mobiles}");
        let alone = refused(&format!("{two}{mobile}"));
        assert!(alone.contains("mobile needs --radio"), "{alone}");
        let bits = refused(&format!("{two}mark-bits = 99"));
        assert!(bits.contains("mark-bits 0x63 is none of the four bits"), "{bits}");
        let off = refused(&format!("{two}radio = \"\"\npolicy = \"tcp-ecn\"\narq = \"off\""));
        assert!(off.contains("it needs arq mac, mac+link or head"), "{off}");
        let same = refused("wired = \"tun0\"\nwireless = \"tun0\"");
        assert!(same.contains("both `tun0`") && same.contains("--wireless tun1"), "{same}");
        let missing = refused("wired = \"tun0\"");
        assert!(missing.contains("for example: basestation --wired tun0"), "{missing}");
    }
}
