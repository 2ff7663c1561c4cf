//! The rules on paths that are given by formulas.

use super::*;

const PACKET: f64 = 11_200.0;

/// Returns an epoch at the current rate on a path with capacity `carries`, with a queue or without.
fn epoch(control: &RateControl, carries: f64, congested: bool) -> EpochView {
    EpochView {
        at: Instant::ZERO,
        send_rate: control.rate(),
        receive_rate: control.rate().min(carries),
        congested,
        congestive: 0.0,
        fresh: true,
        rtt: Duration::from_millis(100),
        packet: PACKET,
    }
}

fn control(kind: NetworkKind, seed: f64) -> RateControl {
    RateControl::new(kind, 1e9, Some(seed), 1e5)
}

#[test]
fn a_decrease_doubles_and_never_passes_half() {
    let mut control = control(NetworkKind::General, 1e6);
    control.rate_min = 0.0;
    let mut factors = Vec::new();
    for _ in 0..6 {
        let before = control.rate();
        control.decrease();
        factors.push((control.rate() / before * 100.0).round());
    }
    assert_eq!(factors, [95.0, 90.0, 80.0, 60.0, 50.0, 50.0]);
}

#[test]
fn an_idle_path_is_found_out_and_a_full_one_is_not_overrun() {
    let mut control = control(NetworkKind::General, 1e6);
    let mut most = 0.0f64;
    // A queue appears when more is sent than the path carries, and disappears an epoch after less
    // is sent.
    for step in 0..400 {
        let at = Instant::from_millis(step * 100);
        let view = EpochView { at, ..epoch(&control, 1e7, control.rate() > 1e7) };
        control.on_epoch(&view);
        most = most.max(control.rate());
    }
    assert!(most < 1.26e7, "{most}");
    assert!(control.rate() > 0.6e7, "{}", control.rate());
}

#[test]
fn flows_that_share_a_path_come_to_share_it_evenly() {
    let mut flows = [1e5, 9e5, 3e6, 6e6].map(|rate| control(NetworkKind::General, rate));
    let carries = 1e7;
    flows.iter_mut().for_each(|flow| (0..3).for_each(|_| flow.on_train(carries, PACKET)));
    let mut sums = [0.0; 4];
    for step in 0..3_000 {
        let total: f64 = flows.iter().map(RateControl::rate).sum();
        let over = (total / carries).max(1.0);
        for (flow, sum) in flows.iter_mut().zip(&mut sums) {
            let view = EpochView {
                at: Instant::from_millis(step * 100),
                receive_rate: flow.rate() / over,
                ..epoch(flow, f64::INFINITY, over > 1.0)
            };
            flow.on_epoch(&view);
            *sum += if step >= 1_000 { flow.rate() } else { 0.0 };
        }
    }
    let jain = sums.iter().sum::<f64>().powi(2) / (4.0 * sums.iter().map(|x| x * x).sum::<f64>());
    assert!(jain > 0.97, "{jain}: {sums:?}");
}

#[test]
fn all_flows_of_a_link_gain_alike_whatever_their_rates() {
    let link = 1e7;
    let mut flows = [1e5, 3e6].map(|rate| control(NetworkKind::General, rate));
    let gained = flows.each_mut().map(|flow| {
        (0..3).for_each(|_| flow.on_train(link, PACKET));
        let before = flow.rate();
        let mut at = Instant::ZERO;
        // An epoch is ten packets of the flow.
        while at < Instant::from_millis(10_000) {
            at += Duration::from_secs_f64(10.0 * PACKET / flow.rate());
            let view = EpochView { at, ..epoch(flow, link, false) };
            flow.on_epoch(&view);
        }
        (flow.rate() - before) / at.since(Instant::ZERO).as_secs_f64()
    });
    // One flow is thirty times as fast as the other.
    assert!((0.7..1.4).contains(&(gained[0] / gained[1])), "{gained:?}");
}

#[test]
fn slow_start_ends_at_what_others_leave() {
    let mut control = RateControl::new(NetworkKind::General, 1e9, None, 1e5);
    control.on_train(1e7, PACKET);
    let starts = control.rate();
    assert!(starts < 1e7 / 2.0);
    let view = epoch(&control, starts / 10.0, false);
    control.on_epoch(&view);
    assert!(control.rate() < starts / 10.0, "{}", control.rate());
}

#[test]
fn feedback_of_another_rate_is_ignored() {
    for kind in [NetworkKind::General, NetworkKind::WirelessLastHop] {
        let mut control = control(kind, 1e6);
        let view = EpochView { fresh: false, ..epoch(&control, 1e5, true) };
        control.on_epoch(&view);
        assert_eq!(control.rate(), 1e6);
    }
}

#[test]
fn on_a_last_hop_the_rate_is_the_links_and_the_queue_is_emptied() {
    let mut control = control(NetworkKind::WirelessLastHop, 180_000.0);
    let view = epoch(&control, 144_000.0, true);
    control.on_epoch(&view);
    assert!((control.rate() - 129_600.0).abs() < 1.0, "{}", control.rate());
    // The queue drains: the receive rate is that of the link, above the send rate.
    let view = EpochView { receive_rate: 144_000.0, ..epoch(&control, 144_000.0, true) };
    control.on_epoch(&view);
    assert!((control.rate() - 129_600.0).abs() < 1.0);
    let view = epoch(&control, 144_000.0, false);
    control.on_epoch(&view);
    assert!((control.rate() - 144_000.0).abs() < 1.0);
}

#[test]
fn on_a_last_hop_three_trains_that_agree_show_a_faster_link() {
    let mut control = control(NetworkKind::WirelessLastHop, 100_000.0);
    control.on_train(144_000.0, PACKET);
    control.on_train(150_000.0, PACKET);
    assert_eq!(control.rate(), 100_000.0);
    control.on_train(146_000.0, PACKET);
    assert_eq!(control.rate(), 144_000.0);
    control.on_train(400_000.0, PACKET);
    assert_eq!(control.rate(), 144_000.0, "one alone is an accident");
}

#[test]
fn congestive_losses_halve_the_rate_for_an_epoch_and_severe_ones_for_longer() {
    for (congestive, after) in [(0.1, 0.85e6), (0.5, 0.25e6)] {
        let mut control = control(NetworkKind::General, 1e6);
        control.on_congestive_losses(PACKET);
        assert_eq!(control.rate(), 0.5e6);
        let view = EpochView { congestive, ..epoch(&control, 1e6, false) };
        control.on_epoch(&view);
        assert_eq!(control.rate(), after);
    }
}

#[test]
fn the_cap_and_a_packet_a_second_are_the_bounds_of_everything() {
    let mut capped = RateControl::new(NetworkKind::General, 2e6, Some(1e9), 1e5);
    assert_eq!(capped.rate(), 2e6);
    for _ in 0..50 {
        let view = epoch(&capped, 1e9, false);
        capped.on_epoch(&view);
        capped.on_train(1e9, PACKET);
        assert!(capped.rate() <= 2e6);
    }
    for _ in 0..100 {
        capped.on_stall_over(PACKET);
        capped.on_congestive_losses(PACKET);
    }
    assert_eq!(capped.rate(), PACKET);
    // A train whose second packet was late does not cause a wait of minutes.
    for kind in [NetworkKind::General, NetworkKind::WirelessLastHop] {
        let mut slow = RateControl::new(kind, 1e9, None, 1e5);
        slow.on_train(PACKET / 4.0, PACKET);
        assert_eq!(slow.rate(), PACKET);
    }
}

#[test]
fn slow_start_ends_at_the_cap() {
    let mut control = RateControl::new(NetworkKind::General, 1e6, None, 1e5);
    control.on_train(1e9, PACKET);
    for _ in 0..10 {
        let view = epoch(&control, 1e9, false);
        control.on_epoch(&view);
    }
    assert_eq!((control.rate(), control.slow_start), (1e6, None));
}

#[test]
fn a_new_rate_is_announced_once() {
    let mut control = control(NetworkKind::General, 1e6);
    assert!(!control.take_restart());
    control.reconfigure(NetworkKind::WirelessLastHop, Some(5e5));
    assert!(control.take_restart() && !control.take_restart());
    control.reconfigure(NetworkKind::General, None);
    assert_eq!(control.rate(), 5e5, "a rate that is not given stays");
}
