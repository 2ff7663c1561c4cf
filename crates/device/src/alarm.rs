//! A timer with a resolution of microseconds.

use std::io;
use std::time::Duration;

use airtcp_types::Instant;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use crate::Clock;
use crate::sys::{self, Timer};

/// A kernel timer (timerfd). It wakes within tens of microseconds of its time, whereas the
/// runtime's own timers count milliseconds.
#[derive(Debug)]
pub struct Alarm {
    fd: AsyncFd<Timer>,
    clock: Clock,
    armed: Option<Instant>,
}

impl Alarm {
    /// Creates an alarm that is off, on the current runtime.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    ///
    /// # Panics
    /// Outside a tokio runtime, and in a runtime built without its IO driver.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = Timer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?);
        Ok(Self { fd: sys::register_timer(timer)?, clock, armed: None })
    }

    /// Sets the alarm to `at`, which may be in the past, or turns it off. Setting it to its current
    /// time costs no system call.
    ///
    /// # Errors
    /// None that the kernel documents.
    pub fn set(&mut self, at: Option<Instant>) -> io::Result<()> {
        if self.armed == at {
            return Ok(());
        }
        self.armed = at;
        let Some(at) = at else { return Ok(self.fd.get_ref().0.unset()?) };
        // Zero would turn the timer off.
        let left = at.since(self.clock.now()).max(Duration::from_nanos(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(left));
        Ok(self.fd.get_ref().0.set(once, TimerSetTimeFlags::empty())?)
    }

    /// Waits until the alarm rings, after which it is off. Cancel-safe.
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
                // The alarm was set again after it had rung.
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_at_its_time_and_not_before() {
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
    async fn an_alarm_that_is_off_or_moved_does_not_ring() {
        let clock = Clock::start();
        let mut alarm = Alarm::new(clock).unwrap();
        for later in [None, Some(clock.now() + Duration::from_secs(3_600))] {
            // The alarm has rung by now, but nothing has waited for it.
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
