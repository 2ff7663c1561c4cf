//! Descriptions: what is accepted, and where errors are reported.

use proptest::prelude::*;

use super::*;

#[test]
fn what_is_wrong_is_pointed_at() {
    for (text, error) in [
        (
            "rate",
            "at byte 4, the end: expected a rate with its unit (gbit, mbit, kbit or bit), such as `10mbit`",
        ),
        ("rate 10mbit  loss 1", "at byte 18, `1`: expected a share from 0% to 100%, such as `1%`"),
        (
            "delay 5",
            "at byte 6, `5`: expected a time with its unit (s, ms, us or ns), such as `5ms`",
        ),
        ("rate 0mbit", "at byte 5, `0mbit`: expected a rate above zero, such as `10mbit`"),
        ("seed 1 seed 2", "at byte 7, `seed`: expected this part only once"),
        (
            "trace up.txt rate 5mbit",
            "at byte 13, `rate`: expected either rate or trace, not both: remove one",
        ),
        (
            "mark 65 codel",
            "at byte 8, `codel`: expected one of codel, fq_codel, red and mark, and no second: remove one",
        ),
        ("red min 5 max 5", "at byte 14, `5`: expected a count above min, such as `15`"),
        (
            "delay 5ms 1ms distribution norml",
            "at byte 27, `norml`: expected uniform, normal or pareto; did you mean `normal`?",
        ),
        (
            "only forth only back",
            "at byte 16, `back`: expected one direction only, such as `forth`",
        ),
        ("only", "at byte 4, the end: expected payload, forth or back, such as `forth`"),
        (
            "limit 10MB",
            "at byte 6, `10MB`: expected a number of packets from 1 to 1000000, before the size in \
             bytes if any, such as `50`",
        ),
        (
            "drop 5-3",
            "at byte 5, `5-3`: expected every, or packet numbers from 1 on, such as `3,7,10-12`",
        ),
        ("biterror 0.7", "at byte 9, `0.7`: expected a bit error rate up to 0.5, such as `1e-6`"),
        (
            "police rate 10mbit",
            "at byte 18, the end: expected police rate RATE burst SIZE, such as `police rate 10mbit \
             burst 64kb`",
        ),
        (
            "red min 5 15",
            "at byte 10, `15`: expected red min PACKETS max PACKETS probability P, such as `red min \
             5 max 15 probability 10%`",
        ),
        (
            "delay 5ms, loss 1%",
            "at byte 6, `5ms,`: expected a time with its unit (s, ms, us or ns), such as `5ms`; \
             separate parts with spaces",
        ),
        (
            "loss 5% 25%",
            "at byte 8, `25%`: expected the next part (the part before takes no more values, and \
             netem's correlations are not supported: for burst losses use `loss gemodel`), such as \
             `loss 1%`",
        ),
        (
            "police rate 10mbit burst 0b",
            "at byte 25, `0b`: expected a size over zero with its unit (b, kb or mb), such \
             as `64kb`",
        ),
        (
            "aggregate 0ms",
            "at byte 10, `0ms`: expected a time over zero with its unit (s, ms, us or ns), such as \
             `5ms`",
        ),
        (
            "aggregate 5ms packets 0",
            "at byte 22, `0`: expected a whole number from 1 to 1000000, such as `42`",
        ),
        (
            "rate 1mbit at 5s",
            "at byte 16, the end: expected rate, delay or loss, the parts that can change, \
             such as `rate 1mbit`",
        ),
        (
            "at 5s at 6s loss 1%",
            "at byte 6, `at`: expected rate, delay or loss, the parts that can change, \
             such as `rate 1mbit`",
        ),
        (
            "at 5s loss 1% limit 20",
            "at byte 14, `limit`: expected rate, delay or loss, the parts that can change, \
             such as `rate 1mbit`",
        ),
        ("at 5s loss 1% loss 2%", "at byte 14, `loss`: expected this part only once"),
        (
            "at 5s loss 1% at 5s loss 2%",
            "at byte 17, `5s`: expected a time with its unit, after that of the change \
             before, such as `5s`",
        ),
        (
            "corrupt 5% header",
            "at byte 17, the end: expected a share from 0% to 100%, such as `95%`",
        ),
    ] {
        assert_eq!(text.parse::<LinkSpec>().unwrap_err().to_string(), error);
    }
    let changes: String = (0..=1_000).map(|second| format!("at {second}s loss 1% ")).collect();
    let error = changes.parse::<LinkSpec>().unwrap_err();
    assert_eq!((error.word.as_str(), error.expected), ("at", "no more than 1000 changes"));
    let unknown = "delay 5ms los\u{7} 1%".parse::<LinkSpec>().unwrap_err();
    assert_eq!((unknown.offset, unknown.word.as_str()), (10, "los\\u{7}"));
}

#[test]
fn netems_defaults_are_netems() {
    let spec: LinkSpec = "loss gemodel 1%".parse().unwrap();
    assert_eq!(spec.to_string(), "loss gemodel 1% 99% 100% 0% seed 0");
    assert_eq!(LinkSpec::default().queue.packets, 1_000);
}

fn part() -> impl Strategy<Value = String> {
    let number = || 0u32..2_000_000;
    let decimal = || 0.0f64..100.0;
    let unit = prop::sample::select(&["s", "ms", "us", "ns"][..]);
    let text = prop::sample::select(
        &[
            "rate Nkbit",
            "rate N.5mbit 14",
            "trace some/file",
            "half NU",
            "limit N",
            "limit N 5kb",
            "codel",
            "codel target NU ecn",
            "codel interval NU",
            "fq_codel",
            "fq_codel target NU interval NU ecn",
            "red min 3 max N probability P",
            "mark N",
            "delay NU",
            "delay NU 3U",
            "delay NU inorder",
            "delay NU 1ms distribution pareto inorder",
            "police rate Nkbit burst Nb",
            "police rate 1mbit burst 64kb",
            "aggregate NU",
            "aggregate NU packets N",
            "aggregate 5ms packets N bytes Nkb",
            "at NU rate Nkbit",
            "at NU rate 3mbit 14 loss P",
            "at 3s delay NU at 1000s loss gemodel P P at NU delay 5ms 1ms inorder",
            "delayed P NU 8ms",
            "paths NU 0s",
            "loss P",
            "loss random P",
            "loss gemodel P",
            "loss gemodel P P",
            "loss gemodel P P P P",
            "burst P N",
            "drop every N",
            "drop 1,N,5-9",
            "duty NU 1ms",
            "duplicate P",
            "biterror 0.00N",
            "corrupt P",
            "corrupt P header P run 3 bits 32",
            "down NU 5ms",
            "down 1s 1U every NU",
            "only payload",
            "only forth",
            "only back",
            "seed N",
            "corrupt P header",
            "rate",
            "N",
            "P",
        ][..],
    );
    (text, number(), decimal(), unit).prop_map(|(text, number, percent, unit)| {
        let text = text.replace('P', &format!("{percent}%")).replace('N', &number.to_string());
        text.replace('U', unit)
    })
}

proptest! {
    #[test]
    fn what_is_read_is_shown_and_read_again(parts in prop::collection::vec(part(), 0..5)) {
        if let Ok(spec) = parts.join("  ").parse::<LinkSpec>() {
            let shown = spec.to_string();
            prop_assert_eq!(shown.parse::<LinkSpec>(), Ok(spec), "{}", shown);
        }
    }

    #[test]
    fn a_single_part_that_is_read_is_shown_and_read_again(part in part()) {
        if let Ok(spec) = part.parse::<LinkSpec>() {
            let shown = spec.to_string();
            prop_assert_eq!(shown.parse::<LinkSpec>(), Ok(spec), "{}", shown);
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,60}", more in "[a-z0-9% .,\n-]{0,60}") {
        for text in [text, more] {
            if let Err(error) = text.parse::<LinkSpec>() {
                prop_assert!(error.offset <= text.len());
                prop_assert!(error.to_string().lines().count() == 1);
            }
        }
    }
}
