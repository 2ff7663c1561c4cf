use airtcp_types::rng::Stream;

use super::*;
use crate::testkit::{FIRST, SMSS, segments, seq};
use crate::transmission::Delivered;

const NEW: SendRule = SendRule::NewData;
const AGAIN: SendRule = SendRule::Repair;

/// A board whose every change is audited.
struct Audited(Board);

/// Returns the snapshot of a transmission of `bytes` that is sent now.
fn leaving(board: &Board, bytes: ByteCount) -> Snapshot {
    Snapshot { tx_in_flight: board.in_flight() + bytes, ..Snapshot::default() }
}

impl Audited {
    fn with(count: u64) -> Self {
        let mut board = Self(Board::new(FIRST));
        for index in 0..count {
            board.send_new(segments(index, index + 1));
        }
        board
    }

    fn send_new(&mut self, range: SeqRange) -> TxNo {
        let snapshot = leaving(&self.0, range.len());
        let tx = self.0.send_new(Instant::ZERO, range, NEW, snapshot);
        self.0.audit().unwrap();
        tx
    }

    fn send_again(&mut self, start: ExtSeq, len: u64) -> Option<TxNo> {
        let now = Instant::from_millis(1);
        let tx = self.0.send_again(now, start, ByteCount(len), AGAIN, Snapshot::default());
        self.0.audit().unwrap();
        tx
    }

    fn acknowledge(&mut self, ack: ExtSeq, blocks: &[SeqRange]) -> Vec<Delivered> {
        let before: Vec<Transmission> = self.0.in_order_sent().collect();
        let mut delivered = Vec::new();
        self.0.acknowledge(ack, blocks, &mut delivered);
        self.0.audit().unwrap();
        for entry in delivered.iter().filter(|entry| entry.transmissions().count() > 1) {
            let mut start = entry.range.start;
            for tx in entry.transmissions() {
                let sent = before.iter().find(|sent| sent.tx == tx).unwrap();
                assert_eq!(sent.range, SeqRange::new(start, start + entry.size));
                assert_eq!((sent.sent_at, sent.resent), (entry.sent_at, 0));
                start = sent.range.end;
            }
            assert_eq!(start, entry.range.end);
        }
        delivered
    }

    fn mark_lost(&mut self, tx: u64) -> bool {
        let done = self.0.mark_lost(TxNo(tx));
        self.0.audit().unwrap();
        done
    }

    fn mark_all_lost(&mut self) {
        self.0.mark_all_lost(|_| false);
        self.0.audit().unwrap();
    }

    fn state(&self, tx: u64) -> Option<TxState> {
        self.0.get(TxNo(tx)).map(|transmission| transmission.state)
    }

    /// Returns the bytes in flight, lost and SACKed.
    fn bytes(&self) -> (u64, u64, u64) {
        (self.0.in_flight().0, self.0.lost().0, self.0.sacked().0)
    }
}

// Shows: RFC6675-3
#[test]
fn a_transmission_goes_through_its_states() {
    let mut board = Audited::with(4);
    assert_eq!(board.bytes(), (4 * SMSS, 0, 0));
    assert!(board.mark_lost(1));
    assert!(!board.mark_lost(1), "only what is in flight can be lost");
    assert_eq!(board.acknowledge(FIRST, &[segments(2, 3)]).len(), 1);
    assert_eq!(board.bytes(), (2 * SMSS, SMSS, SMSS));
    assert_eq!(board.0.first_lost().unwrap().tx, TxNo(1));

    let again = board.send_again(seq(1), SMSS).unwrap();
    assert_eq!((again, board.0.get(again).unwrap().resent), (TxNo(4), 1));
    assert_eq!(board.0.get(again).unwrap().previous(), Some(TxNo(1)));
    assert_eq!((board.state(1), board.0.first_lost().is_none()), (Some(TxState::Superseded), true));
    assert!(!board.mark_lost(1), "its successor decides");
    assert!(!board.mark_lost(2), "what is SACKed is not lost");

    let delivered = board.acknowledge(seq(4), &[]);
    assert_eq!(
        delivered.iter().map(|d| (d.tx.0, d.resent)).collect::<Vec<_>>(),
        [(0, 0), (4, 1), (3, 0)]
    );
    assert!(board.0.is_empty());
    assert_eq!((board.bytes(), board.0.in_order_sent().count()), ((0, 0, 0), 0));
    assert_eq!(board.0.next_tx(), TxNo(5));
}

#[test]
fn segments_sent_together_are_reported_together() {
    let numbers = |board: &mut Audited, ack| -> Vec<Vec<u64>> {
        let delivered = board.acknowledge(ack, &[]);
        delivered.iter().map(|entry| entry.transmissions().map(|tx| tx.0).collect()).collect()
    };
    let mut board = Audited::with(8);
    assert_eq!(numbers(&mut board, seq(3)), [[0, 1, 2]]);
    assert_eq!(numbers(&mut board, seq(4) + SMSS / 2), [vec![3], vec![4]], "the last in part");
    // Segments that were lost, retransmitted or SACKed are reported one by one.
    board.mark_lost(6);
    board.send_again(seq(6), SMSS).unwrap();
    board.send_new(segments(8, 9));
    board.send_new(segments(9, 10));
    assert_eq!(numbers(&mut board, seq(10)), [vec![4], vec![5], vec![8], vec![7], vec![9, 10]]);
    let mut board = Audited::with(2);
    board.send_new(SeqRange::new(seq(2), seq(2) + 7));
    let later = SeqRange::new(seq(2) + 7, seq(2) + 14);
    let snapshot = leaving(&board.0, later.len());
    board.0.send_new(Instant::from_millis(1), later, NEW, snapshot);
    assert_eq!(
        numbers(&mut board, later.end),
        [vec![0, 1], vec![2], vec![3]],
        "by length and time"
    );
}

#[test]
fn a_partial_ack_trims_and_a_partial_block_waits() {
    let mut board = Audited::with(3);
    let delivered = board.acknowledge(FIRST + 300, &[]);
    assert_eq!((delivered.len(), delivered[0].range.len()), (1, ByteCount(300)));
    assert_eq!(board.0.first().unwrap().range, SeqRange::new(FIRST + 300, seq(1)));
    assert_eq!(board.0.flight_size(), ByteCount(2_700));
    // A block counts for a segment once it covers all of it.
    assert!(board.acknowledge(FIRST, &[SeqRange::new(seq(1), seq(1) + 600)]).is_empty());
    assert_eq!(board.bytes(), (2_700, 0, 0));
    assert_eq!(board.acknowledge(FIRST, &[SeqRange::new(seq(1) + 500, seq(2))]).len(), 1);
    assert_eq!(board.bytes(), (1_700, 0, 1_000));
    // A lost segment is trimmed and stays lost.
    assert!(board.mark_lost(0));
    board.acknowledge(FIRST + 400, &[]);
    assert_eq!(board.0.first_lost().unwrap().range.len(), ByteCount(600));
}

#[test]
fn an_ack_can_leave_of_a_segment_only_what_was_sacked() {
    let mut board = Audited::with(2);
    board.acknowledge(FIRST, &[SeqRange::new(FIRST + 200, FIRST + 1_500)]);
    assert_eq!(board.bytes(), (2 * SMSS, 0, 0));
    let delivered = board.acknowledge(FIRST + 300, &[]);
    assert_eq!(delivered.iter().map(|d| d.range.len().0).collect::<Vec<_>>(), [300, 700]);
    assert_eq!(board.bytes(), (SMSS, 0, 700));
}

#[test]
fn a_repair_of_a_part_splits_a_segment() {
    let mut board = Audited::with(2);
    board.mark_lost(0);
    let part = board.send_again(seq(0), 400).unwrap();
    assert_eq!(board.bytes(), (SMSS + 400, SMSS - 400, 0));
    assert_eq!(board.0.first().unwrap().tx, part);
    assert_eq!(board.0.first_lost().unwrap().range, SeqRange::new(FIRST + 400, seq(1)));
    let rest = board.send_again(FIRST + 400, SMSS).unwrap();
    assert_eq!(
        (board.0.lost(), board.0.get(rest).unwrap().range.len()),
        (ByteCount(0), ByteCount(600))
    );
    assert_eq!(board.acknowledge(seq(2), &[]).len(), 3);
}

#[test]
fn splitting_what_was_sent_twice_leaves_no_copy_behind() {
    let mut board = Audited::with(2);
    // In flight twice: retransmitted before the first transmission was marked lost.
    board.send_again(seq(0), SMSS);
    assert_eq!(board.bytes(), (3 * SMSS, 0, 0));
    board.send_again(seq(0), 400);
    // The first 400 bytes once, the rest twice.
    assert_eq!(board.bytes(), (400 + 2 * 600 + SMSS, 0, 0));
    board.acknowledge(FIRST + 400, &[]);
    assert_eq!(board.bytes(), (2 * 600 + SMSS, 0, 0));
}

#[test]
fn of_two_sendings_in_flight_the_later_one_decides() {
    let mut board = Audited::with(1);
    board.send_again(seq(0), SMSS);
    assert!(board.mark_lost(0));
    assert_eq!((board.state(0), board.bytes()), (Some(TxState::Superseded), (SMSS, 0, 0)));
    assert!(board.mark_lost(1));
    assert_eq!(board.bytes(), (0, SMSS, 0));
    board.send_again(seq(0), SMSS);
    board.acknowledge(FIRST, &[segments(0, 1)]);
    assert_eq!(board.bytes(), (0, 0, SMSS));
}

// Shows: RFC6675-5.1-3
#[test]
fn after_a_time_out_only_what_was_sacked_is_not_lost() {
    let mut board = Audited::with(5);
    board.acknowledge(FIRST, &[segments(2, 4)]);
    board.mark_all_lost();
    assert_eq!(board.bytes(), (0, 3 * SMSS, 2 * SMSS));
    board.0.revive_lost();
    board.0.audit().unwrap();
    assert_eq!(board.bytes(), (3 * SMSS, 0, 2 * SMSS));
}

#[test]
fn a_receiver_that_sacked_the_first_byte_has_reneged() {
    for block in [segments(0, 3), SeqRange::new(FIRST, FIRST + 10)] {
        let mut board = Audited::with(5);
        board.acknowledge(FIRST, &[block]);
        board.mark_all_lost();
        assert_eq!(board.bytes(), (0, 5 * SMSS, 0));
        assert!(board.0.sacked_ranges().is_empty());
    }
}

#[test]
fn looking_up_goes_by_number_and_by_order() {
    let mut board = Audited::with(4);
    board.send_again(seq(1), SMSS);
    assert_eq!(board.0.at(seq(1) + 5).unwrap().tx, TxNo(4));
    assert!(board.0.at(seq(4)).is_none() && board.0.at(ExtSeq(0)).is_none());
    assert_eq!(board.0.last().unwrap().tx, TxNo(3));
    let starting: Vec<u64> =
        board.0.starting_in(SeqRange::new(seq(0) + 1, seq(3))).map(|t| t.tx.0).collect();
    assert_eq!(starting, [4, 2]);
    let order: Vec<u64> = board.0.in_order_sent().map(|t| t.tx.0).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    assert!(board.0.get(TxNo(99)).is_none());
}

#[test]
fn whatever_is_done_the_bytes_add_up() {
    for round in 0..200 {
        let mut stream = Stream::new(11, round);
        let mut board = Audited::with(0);
        let mut last = None;
        for _ in 0..200 {
            let (una, nxt) = (board.0.snd_una(), board.0.snd_nxt());
            let somewhere = |stream: &mut Stream| una + stream.below(nxt.since(una).0 + 2);
            match stream.below(7) {
                0 | 1 => {
                    let len = if stream.chance(0.5) { SMSS } else { 1 + stream.below(SMSS) };
                    last = Some(board.send_new(SeqRange::new(nxt, nxt + len)));
                }
                2 => {
                    let start = somewhere(&mut stream);
                    let wanted = board.0.at(start).filter(|t| t.state != TxState::Sacked);
                    if let Some(start) = wanted.map(|t| t.range.start) {
                        let tx = board.send_again(start, 1 + stream.below(SMSS)).unwrap();
                        assert!(last.is_none_or(|last| last < tx), "numbers rise");
                        last = Some(tx);
                    }
                }
                3 => {
                    let tx = stream.below(board.0.next_tx().0 + 1);
                    board.mark_lost(tx);
                }
                4 => {
                    let ack = somewhere(&mut stream);
                    board.acknowledge(ack, &[]);
                }
                5 => {
                    let (start, end) = (somewhere(&mut stream), somewhere(&mut stream));
                    let delivered = board.acknowledge(una, &[SeqRange::new(start, end)]);
                    assert!(delivered.iter().all(|entry| !entry.cumulative));
                }
                _ if stream.chance(0.1) => board.mark_all_lost(),
                _ => {}
            }
            let (in_flight, lost, sacked) = board.bytes();
            let flight_size = board.0.flight_size().0;
            assert!(in_flight + lost + sacked >= flight_size, "every byte is in a state");
            assert!(lost + sacked <= flight_size, "and none in two");
        }
    }
}

#[test]
fn spelled_out_or_not_what_left_together_is_the_same() {
    for round in 0..200 {
        let mut stream = Stream::new(12, round);
        let [mut together, mut spelled] = [(); 2].map(|()| Board::new(FIRST));
        for now in 0..100 {
            let (now, una, nxt) =
                (Instant::from_millis(now), together.snd_una(), together.snd_nxt());
            let somewhere = |stream: &mut Stream| una + stream.below(nxt.since(una).0 + 2);
            let size = ByteCount(if stream.chance(0.8) { SMSS } else { 1 + stream.below(SMSS) });
            let range = SeqRange::new(nxt, nxt + size * (1 + stream.below(20)));
            let (one, other) = (somewhere(&mut stream), somewhere(&mut stream));
            let (tx, what) = (TxNo(stream.below(together.next_tx().0 + 1)), stream.below(20));
            let times_out = stream.chance(0.2);
            let changed = [&mut together, &mut spelled].map(|board| {
                let mut delivered = Vec::new();
                match what {
                    0..8 => board.send_together(board.new_run(
                        now,
                        range,
                        size,
                        NEW,
                        Snapshot::default(),
                    )),
                    8..13 => board.acknowledge(one, &[], &mut delivered),
                    13..16 => board.acknowledge(una, &[SeqRange::new(one, other)], &mut delivered),
                    16..18 => drop(board.mark_lost(tx)),
                    18 => drop(board.send_again(now, one, size, AGAIN, Snapshot::default())),
                    _ if times_out => drop(board.mark_all_lost(|_| false)),
                    _ => {}
                }
                board.audit().unwrap();
                delivered.iter().flat_map(each).collect::<Vec<_>>()
            });
            assert_eq!(changed[0], changed[1]);
            spelled.spell_out(spelled.snd_nxt());
            assert!(spelled.runs.is_empty());
            let asked = [&together, &spelled].map(|board| {
                let range = SeqRange::new(one.min(other), one.max(other));
                let one_by_one =
                    [board.first(), board.first_lost(), board.last(), board.at(one), board.get(tx)];
                let numbers = (board.oldest_tx(), board.next_tx(), board.is_empty());
                let bytes = (board.in_flight(), board.lost(), board.sacked(), board.flight_size());
                let lists =
                    [board.in_order_sent().collect(), board.starting_in(range).collect::<Vec<_>>()];
                format!("{one_by_one:?} {numbers:?} {bytes:?} {lists:?}")
            });
            assert_eq!(asked[0], asked[1]);
        }
    }
}

/// Returns the transmissions of an entry one by one.
fn each(entry: &Delivered) -> impl Iterator<Item = (TxNo, SeqRange, Instant, u32, bool)> {
    let starts = (0u64..).map(|n| entry.range.start + entry.size * n);
    let ranges = starts.map(|start| SeqRange::new(start, start + entry.size));
    let about = (entry.sent_at, entry.resent, entry.cumulative);
    entry.transmissions().zip(ranges).map(move |(tx, range)| (tx, range, about.0, about.1, about.2))
}
