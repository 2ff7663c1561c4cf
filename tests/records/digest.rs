//! Checksums of the packets and the figures of a case.

use std::fmt;

use airtcp_types::{Crossing, Instant, NodeId, Observer, Packet};
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The bytes of a checksum that are recorded.
const SHOWN: usize = 16;

/// A checksum over every packet that leaves a node, with its time.
#[derive(Default)]
pub(crate) struct Packets(Sha256);

impl Packets {
    pub(crate) fn add(&mut self, now: Instant, node: u32, packet: &Packet) {
        self.0.update(now.as_nanos().to_be_bytes());
        self.0.update(node.to_be_bytes());
        self.0.update((packet.len() as u64).to_be_bytes());
        self.0.update(&packet.data);
        packet.tail.iter().for_each(|part| self.0.update(&part[..]));
    }

    pub(crate) fn record(self, figures: &Value) -> Record {
        // `Value` sorts the fields of an object, so their order in the code does not matter.
        Record { packets: self.0, figures: Sha256::new_with_prefix(figures.to_string()) }
    }
}

impl Observer for Packets {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if crossing == Crossing::Out {
            self.add(now, node.0, packet);
        }
    }
}

/// The checksums of one case.
pub(crate) struct Record {
    packets: Sha256,
    figures: Sha256,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |sum: &Sha256| HEXLOWER.encode(&sum.clone().finalize()[..SHOWN]);
        write!(f, "{} {}", hex(&self.packets), hex(&self.figures))
    }
}
