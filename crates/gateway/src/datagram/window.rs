//! Tracks the sequence numbers that have arrived.

/// The number of recent sequence numbers that are tracked. Older frames are dropped.
const REMEMBERED: u32 = 4096;
/// A frame counts as lost once a frame this much newer has arrived without it.
const REORDERED: u32 = 32;

/// Detects duplicates, and counts losses.
#[derive(Debug)]
pub(crate) struct Window {
    /// A bit for each sequence number, modulo [`REMEMBERED`].
    arrived: Vec<u64>,
    highest: u32,
    /// The next sequence number to judge as arrived or lost.
    next: u32,
    /// Whether the last judged number was lost.
    in_run: bool,
    lost: u64,
    runs: u64,
}

/// The state of an arriving sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    Fresh,
    Duplicate,
    TooLate,
}

impl Default for Window {
    /// A window in which nothing has arrived; the first sequence number is 1.
    fn default() -> Self {
        Self {
            arrived: vec![0; (REMEMBERED / u64::BITS) as usize],
            highest: 0,
            next: 1,
            in_run: false,
            lost: 0,
            runs: 0,
        }
    }
}

impl Window {
    /// Records the arrival of a frame.
    pub(crate) fn on_arrival(&mut self, seq: u32) -> Arrival {
        let ahead = seq.wrapping_sub(self.highest).cast_signed();
        if ahead > REMEMBERED.cast_signed() {
            // The other end was silent for long, or started before this end.
            self.arrived.fill(0);
            self.highest = seq;
            self.next = seq.wrapping_sub(REORDERED);
            // Earlier numbers are not known to be lost, so they count as arrived.
            (1..=REORDERED).for_each(|back| self.set(seq.wrapping_sub(back)));
        } else if ahead > 0 {
            for _ in 0..ahead {
                self.highest = self.highest.wrapping_add(1);
                self.clear(self.highest);
                self.judge();
            }
        } else if ahead <= -REMEMBERED.cast_signed() {
            return Arrival::TooLate;
        } else if self.has(seq) {
            return Arrival::Duplicate;
        }
        self.set(seq);
        Arrival::Fresh
    }

    /// Whether a number has arrived, or is too old to know.
    pub(crate) fn has_arrived(&self, seq: u32) -> bool {
        let behind = self.highest.wrapping_sub(seq);
        behind >= REMEMBERED || self.has(seq)
    }

    /// Judges the numbers that are at least [`REORDERED`] behind the highest.
    fn judge(&mut self) {
        while self.highest.wrapping_sub(self.next).cast_signed() >= REORDERED.cast_signed() {
            let lost = !self.has(self.next);
            if lost {
                self.lost += 1;
                self.runs += u64::from(!self.in_run);
            }
            self.in_run = lost;
            self.next = self.next.wrapping_add(1);
        }
    }

    pub(crate) const fn highest(&self) -> u32 {
        self.highest
    }

    /// The count of lost numbers.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// The count of runs of consecutive lost numbers.
    pub(crate) const fn runs(&self) -> u64 {
        self.runs
    }

    fn has(&self, seq: u32) -> bool {
        let (word, bit) = Self::place(seq);
        self.arrived[word] & bit != 0
    }

    fn set(&mut self, seq: u32) {
        let (word, bit) = Self::place(seq);
        self.arrived[word] |= bit;
    }

    fn clear(&mut self, seq: u32) {
        let (word, bit) = Self::place(seq);
        self.arrived[word] &= !bit;
    }

    const fn place(seq: u32) -> (usize, u64) {
        let place = seq % REMEMBERED;
        ((place / u64::BITS) as usize, 1 << (place % u64::BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_and_late_frames_are_distinguished() {
        let mut window = Window::default();
        for seq in [1, 3, 2, 4] {
            assert_eq!(window.on_arrival(seq), Arrival::Fresh, "{seq}");
        }
        assert_eq!(window.on_arrival(2), Arrival::Duplicate);
        assert_eq!(window.on_arrival(4_099), Arrival::Fresh);
        assert_eq!(window.on_arrival(3), Arrival::TooLate);
        assert_eq!(window.on_arrival(5), Arrival::Fresh);
        for (seq, has) in
            [(4_100, true), (4_099, true), (4_098, false), (4, true), (6, false), (3, true)]
        {
            assert_eq!(window.has_arrived(seq), has, "{seq}");
        }
    }

    #[test]
    fn losses_and_their_runs_are_counted_once_reordering_is_excluded() {
        let mut window = Window::default();
        for seq in (1..=100).filter(|seq| ![10, 20, 21, 22, 99].contains(seq)) {
            window.on_arrival(seq);
        }
        assert_eq!((window.lost(), window.runs()), (4, 2));
        (101..=132).for_each(|seq| assert_eq!(window.on_arrival(seq), Arrival::Fresh));
        assert_eq!((window.lost(), window.runs()), (5, 3));
    }

    #[test]
    fn reordered_frames_are_not_lost() {
        let mut window = Window::default();
        for block in 0..100 {
            for seq in (0..30).rev() {
                assert_eq!(window.on_arrival(1 + block * 30 + seq), Arrival::Fresh);
            }
        }
        assert_eq!(window.lost(), 0);
    }

    #[test]
    fn a_jump_is_not_a_loss_and_numbers_wrap() {
        let mut window = Window::default();
        window.on_arrival(u32::MAX - 5);
        assert_eq!(window.lost(), 0, "it is behind by a serial number's half");
        let mut window = Window::default();
        window.on_arrival(1 << 30);
        window.on_arrival((1 << 31) - 5);
        for ahead in 0..100_u32 {
            let seq = ((1_u32 << 31) - 4).wrapping_add(ahead);
            assert_eq!(window.on_arrival(seq), Arrival::Fresh);
        }
        assert_eq!(window.lost(), 0);
        window.on_arrival((1 << 31) + (1 << 30));
        window.on_arrival(u32::MAX - 1);
        for seq in [u32::MAX, 0, 1, 3] {
            assert_eq!(window.on_arrival(seq), Arrival::Fresh);
        }
        assert_eq!(window.on_arrival(0), Arrival::Duplicate);
        assert_eq!(window.lost(), 0);
    }
}
