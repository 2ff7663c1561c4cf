//! Flows that share a path.

use super::*;

/// Returns the payload rates in bit/s of `count` flows from one endpoint to the other, in the
/// second half of `seconds`.
pub(super) fn flows(count: usize, forth: &str, seconds: u64) -> Vec<f64> {
    let [forth, back]: [LinkSpec; 2] = [forth, "delay 10ms"].map(|spec| spec.parse().unwrap());
    let mut link = Link::new(&forth, &back).unwrap();
    let mut ends = [1, 2].map(|key| Endpoint::new(Limits::default(), [key; 16]));
    let at = ["10.0.0.1:1", "10.0.0.2:2"].map(|at| at.parse::<SocketAddr>().unwrap());
    ends[1].listen(Some(Config::default()));
    let mut read = std::collections::BTreeMap::new();
    let mut counted = None;
    let mut now = Instant::ZERO;
    let mut opened = 0;
    let mut buffer = vec![0; READ];
    let end = Instant::ZERO + Duration::from_secs(seconds);
    while now < end {
        // A further flow starts every 100 ms.
        while opened < count && now >= Instant::from_millis(100 * opened as u64) {
            ends[0].connect(now, at[1], Config::default()).unwrap();
            opened += 1;
        }
        while let Some(event) = ends[0].poll_event() {
            if let Event::Connected(id) | Event::Writable(id) = event {
                while ends[0].send(now, id, &buffer).unwrap() > 0 {}
            }
        }
        while let Some(event) = ends[1].poll_event() {
            if let Event::Readable(id) = event {
                let sum = read.entry(id).or_insert(0u64);
                while let Some(got) = ends[1].recv(now, id, &mut buffer).unwrap() {
                    *sum += got as u64;
                }
            }
        }
        for (port, end) in ends.iter_mut().enumerate() {
            let mut datagram = vec![0; HEADERS];
            while end.poll_transmit(now, &mut datagram).is_some() {
                let packet = Packet::new(std::mem::replace(&mut datagram, vec![0; HEADERS]));
                link.handle_packet(now, PortId(port as u16), packet);
            }
        }
        while let Some((port, packet)) = link.poll_transmit(now) {
            let to = usize::from(port.0);
            ends[to].handle_datagram(now, at[1 - to], &packet.data[HEADERS..]);
        }
        if counted.is_none() && now.since(Instant::ZERO) * 2 > Duration::from_secs(seconds) {
            counted = Some(read.clone());
        }
        let starts = (opened < count).then(|| Instant::from_millis(100 * opened as u64));
        let next = ends.iter().filter_map(Endpoint::poll_timeout);
        let next = next.chain(link.poll_timeout()).chain(starts).min().unwrap();
        now = now.max(next);
        link.handle_timeout(now);
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }
    let counted = counted.unwrap_or_default();
    let share = |(id, sum): (&ConnectionId, &u64)| (sum - counted.get(id).unwrap_or(&0)) as f64;
    read.iter().map(|flow| share(flow) * 8.0 / (seconds as f64 / 2.0)).collect()
}

pub(super) fn jain(shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    shares.iter().sum::<f64>().powi(2) / (shares.len() as f64 * squares)
}

#[test]
fn flows_come_to_share_a_path_evenly() {
    // Only the second half counts: in the first seconds the flows start.
    for (count, link, rate, seconds) in [
        (4, "rate 11mbit delay 5ms limit 50", 11e6, 60),
        (10, "rate 11mbit delay 5ms limit 50", 11e6, 60),
        (30, "rate 11mbit delay 5ms limit 50", 11e6, 60),
        (30, "rate 11mbit delay 5ms limit 50 loss 1% seed 4", 11e6, 60),
        (30, "rate 11mbit delay 5ms limit 50 loss 5% seed 4", 11e6, 120),
        (10, "rate 54mbit delay 20ms limit 100", 54e6, 20),
        (4, "rate 2mbit delay 50ms limit 50", 2e6, 120),
    ] {
        let shares = flows(count, link, seconds);
        assert_eq!(shares.len(), count, "{link}");
        let total: f64 = shares.iter().sum();
        assert!(jain(&shares) >= 0.97, "{count} {link}: {} {shares:?}", jain(&shares));
        assert!(total > 0.8 * rate, "{count} {link}: {total}");
    }
}
