//! The format of a scenario file.
//!
//! Tables use neither `flatten` nor untagged enums, because these lose the position of an error.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use ::toml::Spanned;
use airtcp_basestation::Policy;
use airtcp_basestation::station::Mark;
use airtcp_recovery::Profile;
use airtcp_types::ByteCount;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::quantity::{
    Congestion, Detection, Judge, Strategies, some_whole, some_word, whole, word,
};
use crate::FlowDirection;

/// The maximum of counts: more flows, users or exchanges are a mistake.
const MANY: u64 = 1_000_000;

/// The whole file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub(super) name: Option<String>,
    #[serde(default = "ten_seconds")]
    pub(super) duration: Spanned<Time>,
    pub(super) warm_up: Option<Spanned<Time>>,
    #[serde(default = "one", deserialize_with = "whole::<_, 0, { u64::MAX }>")]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) samples: bool,
    pub(super) bottleneck: Option<Spanned<WireFile>>,
    pub(super) access: Option<Spanned<WireFile>>,
    pub(super) station: Option<Spanned<StationFile>>,
    #[serde(default, deserialize_with = "list")]
    pub(super) wire: Vec<Spanned<WireFile>>,
    #[serde(default, deserialize_with = "list")]
    pub(super) flow: Vec<Spanned<FlowFile>>,
}

/// Both directions of a link.
#[derive(Debug)]
pub(super) enum WireFile {
    /// One string for both directions: a description or a name.
    Both(String),
    /// One string for each direction.
    Each(WaysFile),
}

/// The directions of a link, each a description or a name.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct WaysFile {
    pub(super) forth: Spanned<String>,
    pub(super) back: Option<Spanned<String>>,
}

/// Implemented by hand because an untagged enum would lose the position of an error.
impl<'de> Deserialize<'de> for WireFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = WireFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a link description or name, such as \"weak-4g\", or a table with `forth` and optionally `back`",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WireFile, E> {
                Ok(WireFile::Both(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WireFile, A::Error> {
                WaysFile::deserialize(MapAccessDeserializer::new(map)).map(WireFile::Each)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The table `[station]`, with the key names of the base station's configuration.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table: `[station]`")]
pub(super) struct StationFile {
    pub(super) radio: Option<Spanned<String>>,
    pub(super) arq: Option<Spanned<String>>,
    pub(super) policy: Option<Spanned<Policy>>,
    #[serde(default)]
    pub(super) mark: Mark,
    #[serde(default, deserialize_with = "some_whole::<_, 1, 15>")]
    pub(super) mark_bits: Option<u64>,
    #[serde(default, deserialize_with = "some_whole::<_, 1, MANY>")]
    pub(super) flows: Option<u64>,
    #[serde(default, deserialize_with = "some_whole::<_, 1, MANY>")]
    pub(super) unproven: Option<u64>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) hold: Option<ByteCount>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) absence: Option<Duration>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) cache: Option<ByteCount>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) dupack_delay: Option<Duration>,
}

/// A table `[[flow]]`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "a table: `[[flow]]`")]
pub(super) struct FlowFile {
    pub(super) name: Option<String>,
    #[serde(default = "one", deserialize_with = "whole::<_, 1, MANY>")]
    pub(super) count: u64,
    pub(super) strategies: Option<Spanned<Whole>>,
    #[serde(default, alias = "recovery", deserialize_with = "some_word")]
    pub(super) detection: Option<Detection>,
    #[serde(default, alias = "control", deserialize_with = "some_word")]
    pub(super) congestion: Option<Congestion>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) judge: Option<Judge>,
    pub(super) profile: Option<Spanned<Named>>,
    pub(super) prr: Option<Spanned<bool>>,
    pub(super) min_rto: Option<Spanned<Time>>,
    pub(super) initial_window: Option<Spanned<Segments>>,
    pub(super) cwnd_clamp: Option<Spanned<Segments>>,
    #[serde(default, deserialize_with = "word")]
    pub(super) way: FlowDirection,
    pub(super) start: Option<Spanned<Time>>,
    #[serde(default, deserialize_with = "word")]
    pub(super) stagger: Duration,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) stop: Option<Duration>,
    #[serde(default, deserialize_with = "list")]
    pub(super) change: Vec<Spanned<ChangeFile>>,
    pub(super) wires: Option<[Number; 2]>,
    #[serde(default = "ethernet", deserialize_with = "whole::<_, 576, 65535>")]
    pub(super) mtu: u64,
    pub(super) timestamps: Option<Spanned<bool>>,
    pub(super) sack: Option<Spanned<bool>>,
    pub(super) pacing: Option<Spanned<bool>>,
    pub(super) path_memory: Option<Spanned<bool>>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) receive_buffer: Option<ByteCount>,
    #[serde(default, deserialize_with = "some_word")]
    pub(super) send_buffer: Option<ByteCount>,
    #[serde(default, deserialize_with = "word")]
    pub(super) wake_up_delay: Duration,
    pub(super) mark_aware: Option<Spanned<bool>>,
    pub(super) access: Option<Spanned<WireFile>>,
    pub(super) bulk: Option<Spanned<BulkFile>>,
    pub(super) request_response: Option<Spanned<RequestResponseFile>>,
    pub(super) short_flows: Option<Spanned<ShortFlowsFile>>,
    pub(super) ping_pong: Option<Spanned<PingPongFile>>,
}

/// A change of strategies.
#[derive(Deserialize, Debug)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ at = \"10s\", strategies = \"rack/cubic\" }`"
)]
pub(super) struct ChangeFile {
    #[serde(deserialize_with = "word")]
    pub(super) at: Duration,
    pub(super) strategies: Spanned<Whole>,
}

/// Keys of the application `bulk`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ size = \"10MB\" }`")]
pub(super) struct BulkFile {
    #[serde(default, deserialize_with = "some_word")]
    pub(super) size: Option<ByteCount>,
}

/// Keys of the application `request_response`.
#[derive(Deserialize, Debug)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ request = \"100B\", response = \"10kB\" }`"
)]
pub(super) struct RequestResponseFile {
    #[serde(deserialize_with = "word")]
    pub(super) request: ByteCount,
    #[serde(deserialize_with = "word")]
    pub(super) response: ByteCount,
    #[serde(default, deserialize_with = "word")]
    pub(super) think: Duration,
    #[serde(default, deserialize_with = "some_whole::<_, 1, MANY>")]
    pub(super) count: Option<u64>,
}

/// Keys of the application `short_flows`.
#[derive(Deserialize, Debug)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ smallest = \"5kB\", largest = \"50kB\", gap = \"1s\" }`"
)]
pub(super) struct ShortFlowsFile {
    #[serde(deserialize_with = "word")]
    pub(super) smallest: ByteCount,
    #[serde(default)]
    pub(super) largest: Option<Spanned<Size>>,
    #[serde(default, deserialize_with = "word")]
    pub(super) gap: Duration,
    #[serde(default)]
    pub(super) pareto: bool,
    #[serde(default = "one", deserialize_with = "whole::<_, 1, MANY>")]
    pub(super) users: u64,
}

/// Keys of the application `ping_pong`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ size = \"64B\" }`")]
pub(super) struct PingPongFile {
    #[serde(deserialize_with = "word")]
    pub(super) size: ByteCount,
    #[serde(default, deserialize_with = "some_whole::<_, 1, MANY>")]
    pub(super) count: Option<u64>,
}

/// A combination that can be wrapped in [`Spanned`], for its position.
#[derive(Deserialize, Debug)]
#[serde(transparent)]
pub(super) struct Whole(#[serde(deserialize_with = "word")] pub(super) Strategies);

/// A profile that can be wrapped in [`Spanned`], for its position.
#[derive(Deserialize, Debug)]
#[serde(transparent)]
pub(super) struct Named(#[serde(deserialize_with = "word")] pub(super) Profile);

/// A time that can be wrapped in [`Spanned`], for its position.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(transparent)]
pub(super) struct Time(#[serde(deserialize_with = "word")] pub(super) Duration);

/// A number of segments that can be wrapped in [`Spanned`], for its position.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(transparent)]
pub(super) struct Segments(#[serde(deserialize_with = "whole::<_, 1, MANY>")] u64);

impl Segments {
    pub(super) const fn count(self) -> u32 {
        self.0 as u32
    }
}

/// The number of a wire.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(transparent)]
pub(super) struct Number(#[serde(deserialize_with = "whole::<_, 1, MANY>")] u64);

impl Number {
    pub(super) const fn number(self) -> usize {
        self.0 as usize
    }
}

/// A size that can be wrapped in [`Spanned`], for its position.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(transparent)]
pub(super) struct Size(#[serde(deserialize_with = "word")] pub(super) ByteCount);

fn ten_seconds() -> Spanned<Time> {
    Spanned::new(0..0, Time(Duration::from_secs(10)))
}

fn one() -> u64 {
    1
}

fn ethernet() -> u64 {
    1_500
}

/// Parses a list of tables; the error shows how a list is written.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of tables, each with two brackets, as in `[[flow]]`")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(element) = elements.next_element()? {
                list.push(element);
            }
            Ok(list)
        }
    }

    deserializer.deserialize_seq(List(PhantomData))
}
