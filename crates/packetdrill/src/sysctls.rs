//! The namespace's sysctls, which scripts set as they would for the kernel's TCP.

use std::fs;
use std::time::Duration;

use airtcp_stack::tcp::{EcnMode, TcpConfig};
use airtcp_types::ByteCount;

/// The value of `tcp_notsent_lowat` from which on there is no limit.
const NO_LIMIT: ByteCount = ByteCount(u32::MAX as u64);

/// The default of `tcp_min_tso_segs`: segments that Linux sends at once at a low rate.
pub(crate) const AT_ONCE: u16 = 2;

/// Returns how many segments are sent at once: as in Linux at most half a window. The rates of
/// scripts are low.
pub(crate) fn segments_at_once(config: &TcpConfig, read: impl Fn(&str) -> Vec<u64>) -> u16 {
    let least = read("tcp_min_tso_segs").first().map_or(AT_ONCE, |least| *least as u16);
    least.min(config.sender.profile.initial_window as u16 / 2).max(1)
}

/// Returns the fields of `/proc/sys/net/ipv4/NAME`; none if the sysctl does not exist.
pub(crate) fn read(name: &str) -> Vec<u64> {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    text.split_whitespace().filter_map(|field| field.parse().ok()).collect()
}

/// Applies the sysctls for which the stack has settings. The congestion control depends only on
/// `--so_flags`.
pub(crate) fn apply(config: &mut TcpConfig, read: impl Fn(&str) -> Vec<u64>) {
    let switch = |name: &str, setting: &mut bool| {
        if let Some(value) = read(name).first() {
            *setting = *value != 0;
        }
    };
    switch("tcp_timestamps", &mut config.timestamps);
    switch("tcp_sack", &mut config.sack);
    switch("tcp_window_scaling", &mut config.window_scaling);
    match read("tcp_ecn").first() {
        Some(0) => config.ecn = EcnMode::Off,
        Some(1) => config.ecn = EcnMode::Active,
        Some(2) => config.ecn = EcnMode::Passive,
        Some(3) => config.ecn = EcnMode::Accurate,
        Some(4) => config.ecn = EcnMode::ActiveAccurate,
        Some(5) => config.ecn = EcnMode::PassiveAccurate,
        _ => {}
    }
    let profile = &mut config.sender.profile;
    switch("tcp_slow_start_after_idle", &mut profile.idle_restart);
    switch("tcp_early_retrans", &mut profile.tail_loss_probe);
    switch("tcp_frto", &mut profile.f_rto);
    if let Some(thresh) = read("tcp_reordering").first() {
        profile.dup_thresh = u8::try_from(*thresh).unwrap_or(u8::MAX);
    }
    if let Some(largest) = read("tcp_rmem").get(2) {
        config.receive_buffer = ByteCount(*largest);
    }
    if let Some(largest) = read("tcp_wmem").get(2) {
        config.send_buffer = ByteCount(*largest);
    }
    if let Some(mark) = read("tcp_notsent_lowat").first() {
        config.not_sent_low_water = Some(ByteCount(*mark)).filter(|mark| *mark < NO_LIMIT);
    }
    if let Some(retries) = read("tcp_syn_retries").first() {
        config.syn_retries = u8::try_from(*retries).unwrap_or(u8::MAX);
    }
    if let Some(seconds) = read("tcp_fin_timeout").first() {
        config.fin_wait_2 = Duration::from_secs(*seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_ecn_are_linuxs() {
        use EcnMode::{Accurate, Active, ActiveAccurate, Off, Passive, PassiveAccurate};
        let mode = |number: &[u64]| {
            let mut config = TcpConfig::default();
            apply(&mut config, |name| if name == "tcp_ecn" { number.to_vec() } else { vec![] });
            config.ecn
        };
        let modes = [0, 1, 2, 3, 4, 5].map(|number| mode(&[number]));
        assert_eq!(modes, [Off, Active, Passive, Accurate, ActiveAccurate, PassiveAccurate]);
        assert_eq!([mode(&[6]), mode(&[])], [EcnMode::default(); 2]);
    }

    #[test]
    fn sysctls_that_exist_are_applied() {
        let read = |name: &str| match name {
            "tcp_timestamps" | "tcp_early_retrans" => vec![0],
            "tcp_rmem" => vec![4096, 540_000, 15 << 20],
            "tcp_syn_retries" => vec![5],
            "tcp_ecn" => vec![1],
            "tcp_reordering" => vec![5],
            _ => vec![],
        };
        let mut config = TcpConfig::default();
        apply(&mut config, read);
        let default = TcpConfig::default();
        assert!(!config.timestamps && !config.sender.profile.tail_loss_probe);
        assert_eq!((config.ecn, config.sender.profile.dup_thresh), (EcnMode::Active, 5));
        assert_eq!((config.sack, config.send_buffer), (default.sack, default.send_buffer));
        assert_eq!((config.receive_buffer, config.syn_retries), (ByteCount(15 << 20), 5));
    }
}
