//! A timer that rings when it should.

use std::io;
use std::time::Duration;

use airtcp_types::Instant;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::Clock;
use crate::sys::{self, Timer};

/// A timer of the kernel's: it rings within tens of microseconds of its time, where the runtime's
/// own timers count in milliseconds.
#[derive(Debug)]
pub struct Alarm {
    fd: AsyncFd<Timer>,
    clock: Clock,
    armed: Option<Instant>,
}

impl Alarm {
    /// An alarm that is off, for the current runtime.
    ///
    /// # Errors
    /// The process has no descriptor left.
    ///
    /// # Panics
    /// Outside a tokio runtime, and in one built without its IO driver.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        Ok(Self { fd: sys::register_timer(timer)?, clock, armed: None })
    }

    /// Sets it to ring at `at`, which may be past, or turns it off. Setting it to what it is set to
    /// costs nothing.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn set(&mut self, at: Option<Instant>) -> io::Result<()> {
        if self.armed == at {
            return Ok(());
        }
        self.armed = at;
        let Some(at) = at else { return Ok(self.fd.get_ref().0.unset()?) };
        // Zero would turn it off.
        let left = at.since(self.clock.now()).max(Duration::from_nanos(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(left));
        Ok(self.fd.get_ref().0.set(once, TimerSetTimeFlags::empty())?)
    }

    /// Waits until it rings; it is off then. Cancel-safe.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub async fn ring(&mut self) -> io::Result<()> {
        loop {
            let mut guard = self.fd.readable().await?;
            match guard.try_io(|timer| Ok(timer.get_ref().0.wait()?)) {
                Ok(rang) => {
                    self.armed = None;
                    return rang;
                }
                // It was set anew after it had rung.
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_rings_when_it_is_time_and_not_before() {
        let clock = Clock::start();
        let mut alarm = Alarm::new(clock).unwrap();
        for _ in 0..20 {
            let at = clock.now() + Duration::from_micros(300);
            alarm.set(Some(at)).unwrap();
            alarm.ring().await.unwrap();
            assert!(clock.now() >= at);
        }
        alarm.set(Some(Instant::ZERO)).unwrap();
        alarm.ring().await.unwrap();
    }

    #[tokio::test]
    async fn one_that_is_turned_off_or_moved_does_not_ring() {
        let clock = Clock::start();
        let mut alarm = Alarm::new(clock).unwrap();
        for later in [None, Some(clock.now() + Duration::from_secs(3_600))] {
            // It has rung by now, and nobody has heard it.
            alarm.set(Some(Instant::ZERO)).unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            alarm.set(later).unwrap();
            tokio::select! {
                _ = alarm.ring() => panic!("it was set to {later:?}"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    }
}
