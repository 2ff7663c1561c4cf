//! Sends with newer strategies over random loss to the kernel: the data is intact, without a storm
//! of retransmissions.

use airtcp_link::{Link, Way};
use airtcp_stack::HostConfig;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_testbed::{or_skip, requirements};
use airtcp_types::ByteCount;

use crate::MIB;

const LINK: &str = "rate 100mbit delay 1ms limit 100 loss 1% only payload seed 1";
const BACK: &str = "rate 100mbit delay 1ms limit 1000";

/// Transfers data with `sender`, and returns the combination that remains after the negotiation.
async fn haul(sender: &str) -> String {
    let mut config = HostConfig::new([]);
    config.tcp.sender.combination = sender.parse().expect("a combination");
    let spec = |text: &str| text.parse().expect("a link");
    let link = Link::new(&spec(LINK), &spec(BACK)).expect("a link");
    let plan = Plan::new(Host::Stack(Box::new(config)), link, Host::Kernel);
    let dumbbell = Dumbbell::build(plan).expect("a dumbbell");
    let info = dumbbell.deliver(ByteCount(32 * MIB)).await.expect("all that was sent").info;
    let counters = dumbbell.counters(Way::Forth);
    assert!(counters.channel_lost > 100, "{sender}: {counters:?}");
    let lost = counters.channel_lost + counters.queue_dropped;
    let most = info.mss.0 * (lost + lost / 2);
    assert!(info.bytes_retrans.0 < most, "{sender}: {info:?} of {counters:?}");
    dumbbell.stop().expect("a link that ran to the end");
    info.combination
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_strategies_repair_what_is_lost_and_little_else() {
    if or_skip(requirements()).is_none() {
        return;
    }
    for sender in ["le/cubic", "sack/reno/dcr:timer", "sack/westwood", "rack/cubic"] {
        assert_eq!(haul(sender).await, sender);
    }
    // The kernel echoes no transmission numbers.
    assert_eq!(haul("le:echo/cubic").await, "le/cubic");
}
