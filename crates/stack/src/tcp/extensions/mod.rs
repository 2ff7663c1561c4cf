//! Extensions beyond the RFCs: HACK's header checksums and transmission numbers.

mod hack;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use airtcp_recovery::WireNeeds;
use airtcp_types::{ExtSeq, TxNo};
use airtcp_wire::options::{Hack, HackForm, TcpOptions, TxNumbers};

use super::TcpConfig;

/// The maximum number of special ACKs that wait to be sent. Only an extremely large batch of
/// arrivals reaches it.
const MAX_CORRUPTED: usize = 256;
/// Transmission numbers on the wire are in 1..=NUMBERS.
const NUMBERS: u64 = u32::MAX as u64;

/// When to offer and accept an extension beyond the RFCs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offer {
    /// Never.
    Never,
    /// If the local combination needs it.
    #[default]
    IfNeeded,
    /// Always, also for the sender of the peer.
    Always,
}

impl Offer {
    pub(super) const fn stands(self, needed: bool) -> bool {
        match self {
            Self::Never => false,
            Self::IfNeeded => needed,
            Self::Always => true,
        }
    }
}

/// The negotiated extensions and their state; most connections have none.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// The negotiated form of HACK, if any.
    hack: Option<HackForm>,
    /// Segments that arrived with an intact header and corrupted data, and whose special ACKs are
    /// due.
    corrupted: VecDeque<ExtSeq>,
    /// Whether transmissions are numbered.
    numbered: bool,
    /// The last transmission number received.
    received: Option<NonZeroU32>,
}

impl Extensions {
    /// The extensions that this end offers, as options of its SYN.
    pub(super) fn offered(config: &TcpConfig) -> TcpOptions {
        let hack = Hack { form: config.hack_form, checksum: 0 };
        TcpOptions {
            hack: config.offers_hack().then_some(hack),
            tx_numbers: config.offers_tx_numbers().then(TxNumbers::default),
            ..TcpOptions::default()
        }
    }

    /// Removes from `ours` the extensions that the peer's SYN does not offer. A passive open uses
    /// the peer's form of HACK; an active open insists on its own.
    pub(super) fn agree(ours: &mut TcpOptions, theirs: &TcpOptions, passive: bool) -> Option<Self> {
        ours.hack = ours.hack.and_then(|ours| {
            let form = theirs.hack?.form;
            (passive || form == ours.form).then_some(Hack { form, checksum: 0 })
        });
        ours.tx_numbers = ours.tx_numbers.filter(|_| theirs.tx_numbers.is_some());
        let agreed = Self {
            hack: ours.hack.map(|hack| hack.form),
            numbered: ours.tx_numbers.is_some(),
            ..Self::default()
        };
        (agreed.hack.is_some() || agreed.numbered).then_some(agreed)
    }

    /// The negotiated extensions, in the form that strategies require them.
    pub(super) const fn granted(&self) -> WireNeeds {
        WireNeeds { hack: self.hack.is_some(), txno_echo: self.numbered, ..WireNeeds::NONE }
    }

    /// The length of the extensions' options in every segment with data (bytes).
    pub(super) fn overhead(&self) -> usize {
        self.hack.map_or(0, HackForm::overhead) + if self.numbered { TxNumbers::LEN } else { 0 }
    }

    /// Adds the options of the transmission `tx`. The checksum is filled in when the segment is
    /// complete.
    pub(super) fn mark_data(&self, tx: TxNo, has_data: bool, options: &mut TcpOptions) {
        options.hack = self.hack.filter(|_| has_data).map(|form| Hack { form, checksum: 0 });
        options.tx_numbers = self
            .numbered
            .then(|| TxNumbers { number: NonZeroU32::new(on_wire(tx)), echo: self.received });
    }

    /// The transmission number that the next ACK echoes.
    pub(super) const fn received(&self) -> Option<NonZeroU32> {
        self.received
    }

    /// Records the transmission number of an acceptable segment.
    pub(super) fn on_segment(&mut self, options: &TcpOptions) {
        if self.numbered {
            self.received = options.tx_numbers.and_then(|numbers| numbers.number).or(self.received);
        }
    }

    /// The transmission that a segment echoes; `next` is the number of the next transmission.
    pub(super) fn echoed(&self, options: &TcpOptions, next: TxNo) -> Option<TxNo> {
        let echo = options.tx_numbers.filter(|_| self.numbered)?.echo?;
        let back = (u64::from(on_wire(next)) + NUMBERS - u64::from(echo.get())) % NUMBERS;
        // Accepts the half of the number space behind `next`, and only numbers that were sent.
        let sent = (1..=NUMBERS / 2).contains(&back);
        next.0.checked_sub(back).filter(|_| sent).map(TxNo)
    }

    /// Queues a special ACK for the segment at `seq`; returns false if the queue is full.
    pub(super) fn report_corrupted(&mut self, seq: ExtSeq) -> bool {
        let room = self.corrupted.len() < MAX_CORRUPTED;
        if room {
            self.corrupted.push_back(seq);
        }
        room
    }

    /// Takes the next segment whose special ACK is due, and the form of the ACK.
    pub(super) fn pop_corrupted(&mut self) -> Option<(ExtSeq, HackForm)> {
        let seq = self.corrupted.pop_front()?;
        if self.corrupted.is_empty() {
            self.corrupted.shrink_to(0);
        }
        Some((seq, self.hack?))
    }
}

/// The number of a transmission on the wire, where zero means none.
fn on_wire(tx: TxNo) -> u32 {
    (tx.0 % NUMBERS) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(of: u64) -> TcpOptions {
        let echo = NonZeroU32::new(on_wire(TxNo(of)));
        TcpOptions { tx_numbers: Some(TxNumbers { number: None, echo }), ..TcpOptions::default() }
    }

    #[test]
    fn an_echo_names_what_was_sent_across_the_wrap_and_nothing_else() {
        let extensions = Extensions { numbered: true, ..Extensions::default() };
        for next in [1, 7, NUMBERS - 1, NUMBERS, NUMBERS + 1, 3 * NUMBERS + 5] {
            let last = next - 1;
            assert_eq!(extensions.echoed(&echo(last), TxNo(next)), Some(TxNo(last)));
            assert_eq!(extensions.echoed(&echo(next), TxNo(next)), None, "not sent yet");
            assert_eq!(extensions.echoed(&echo(next + 9), TxNo(next)), None);
        }
        assert_eq!(extensions.echoed(&echo(5), TxNo(9)), Some(TxNo(5)));
        assert_eq!(extensions.echoed(&echo(NUMBERS - 3), TxNo(9)), None, "before the first");
        assert_eq!(Extensions::default().echoed(&echo(5), TxNo(9)), None, "not agreed on");
    }

    #[test]
    fn a_passive_open_takes_the_peers_form_and_an_active_open_keeps_its_own() {
        let offer =
            |form| TcpOptions { hack: Some(Hack { form, checksum: 0 }), ..TcpOptions::default() };
        let agreed = |passive| {
            let mut ours = offer(HackForm::Kinds);
            let agreed = Extensions::agree(&mut ours, &offer(HackForm::ExId), passive);
            assert_eq!(agreed.is_some(), ours.hack.is_some());
            agreed.and_then(|agreed| agreed.hack)
        };
        assert_eq!(agreed(true), Some(HackForm::ExId));
        assert_eq!(agreed(false), None);
    }
}
