//! Windows and queues over time.

use super::*;

fn states(scenario: &Scenario, interval: Duration) -> (RunResult, Vec<State>) {
    let mut states = Vec::new();
    let result = run_with_states(scenario, None, interval, &mut |state| states.push(state.clone()));
    (result.unwrap(), states)
}

#[test]
fn sampling_changes_no_result() {
    let link = "rate 10mbit delay 5ms 2ms loss 1%";
    let flows = ["rack/cubic", "rack/bbr3/spike", "rrtp"].map(|sender| flow(sender, BULK));
    let size = ByteCount(20_000);
    let app = App::ShortFlows { size: (size, size), gap: Duration::ZERO, pareto: false, users: 2 };
    for more in ["limit 20", "codel", "at 2s rate 1mbit delay 20ms"] {
        let scenario = Scenario {
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(3),
            flows: flows.iter().cloned().chain([flow("sack/reno", app.clone())]).collect(),
            ..Scenario::new("sampled", dumbbell(&format!("{link} {more}")))
        };
        let (result, states) = states(&scenario, Duration::from_millis(7));
        assert!(!states.is_empty());
        assert_eq!(result, run(&scenario, None).unwrap(), "{more}");
    }
}

#[test]
fn a_window_fills_the_pipe_and_then_the_queue() {
    let profile = Profile { proportional_rate_reduction: false, ..Profile::paper() };
    let flow = FlowSpec { profile, ..flow("sack/fixed:40", BULK) };
    let scenario = one(dumbbell("rate 10mbit delay 10ms limit 100"), flow);
    let (result, states) = states(&scenario, Duration::from_millis(100));
    let mut queue = Vec::new();
    for state in &states {
        match state {
            State::Sender(sender) if sender.time > 1.0 => {
                assert_eq!(
                    (sender.flow.as_str(), sender.host.as_str()),
                    ("sack/fixed:40", "left-1")
                );
                assert_eq!(
                    (sender.cwnd, sender.in_flight),
                    (Some(ByteCount(40 * 1_448)), sender.cwnd)
                );
                // 40 packets at 10 Mbit/s.
                assert!((0.045..0.05).contains(&sender.srtt.unwrap()), "{sender:?}");
            }
            State::Queue(now)
                if now.link == "bottleneck" && now.way == "forth" && now.time > 1.0 =>
            {
                assert_eq!(now.bytes.0, now.packets as u64 * 1_500);
                queue.push(now.packets as f64);
            }
            _ => {}
        }
    }
    assert_eq!(queue.len(), 90, "every 100 ms to the end");
    let mean = queue.iter().sum::<f64>() / 90.0;
    let of_link = result.links.iter().find(|link| link.name == "bottleneck" && link.way == "forth");
    let expected = of_link.unwrap().queue_mean;
    assert!((mean - expected).abs() < 2.0, "{mean}, and {expected} from the start");
}

#[test]
fn rrtp_has_a_rate_and_an_application_that_answers_a_window() {
    let size = ByteCount(100_000);
    let think = Duration::ZERO;
    let answers =
        App::RequestResponse { request: ByteCount(100), response: size, think, count: None };
    let flows = vec![flow("rrtp", BULK), flow("rack/cubic", answers)];
    let scenario = Scenario { flows, ..Scenario::new("both", dumbbell("rate 10mbit delay 10ms")) };
    let (_, states) = states(&scenario, Duration::from_secs(1));
    let of = |host: &str| {
        let mut senders = states.iter().filter_map(|state| match state {
            State::Sender(sender) if sender.host == host => Some(sender),
            _ => None,
        });
        senders.next_back().unwrap_or_else(|| panic!("{host} sends")).clone()
    };
    let rrtp = of("left-1");
    assert!(rrtp.cwnd.is_none() && rrtp.srtt.is_some() && rrtp.pacing_rate.is_some(), "{rrtp:?}");
    let [asks, answers] = ["left-2", "right-2"].map(of);
    assert!(asks.port.is_some() && asks.port == answers.port, "one connection");
    assert!(answers.cwnd > asks.cwnd, "{answers:?} {asks:?}");
}

#[test]
fn an_interval_of_zero_is_refused() {
    let scenario = one(dumbbell("rate 10mbit"), flow("rack/reno", BULK));
    let error = run_with_states(&scenario, None, Duration::ZERO, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("must be above zero"), "{error}");
}

#[test]
fn the_page_knows_every_field() {
    let page = include_str!("../../../../docs/simulation-results.md");
    let scenario = one(dumbbell("rate 10mbit"), flow("rack/reno", BULK));
    for state in states(&scenario, Duration::from_secs(5)).1 {
        let line = serde_json::to_value(state).unwrap();
        for field in line.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{field}`")), "{field}");
        }
    }
}
