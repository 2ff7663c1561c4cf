//! Each message byte by byte, as in the figures of RFC 5944, 3115 and 3543; then any bytes.

use proptest::prelude::*;

use super::*;

const HOME: [u8; 4] = [192, 0, 2, 7];
const AGENT: [u8; 4] = [192, 0, 2, 1];
const CARE_OF: [u8; 4] = [198, 51, 100, 1];

fn v4(address: [u8; 4]) -> IpAddr {
    address.into()
}

fn messages() -> [(Message, Vec<u8>); 4] {
    let (home, home_agent, care_of) = (v4(HOME), v4(AGENT), v4(CARE_OF));
    let identification = 0x0102_0304_0506_0708;
    let request = Request { flags: 0x22, lifetime: 600, home, home_agent, care_of, identification };
    let reply = Reply { code: 133, lifetime: 0, home, home_agent, identification };
    let revocation = Revocation {
        is_from_home: true,
        informs: false,
        home,
        home_agent,
        foreign_agent: care_of,
        identifier: 0x0a0b_0c0d,
    };
    let acknowledgment = Acknowledgment { informs: true, home, identifier: 0x0a0b_0c0d };
    let id: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8];
    [
        (Message::Request(request), [&[1, 0x22, 2, 88], &HOME[..], &AGENT, &CARE_OF, id].concat()),
        (Message::Reply(reply), [&[3, 133, 0, 0], &HOME[..], &AGENT, id].concat()),
        (
            Message::Revocation(revocation),
            [&[7, 0, 0x80, 0], &HOME[..], &AGENT, &CARE_OF, &[10, 11, 12, 13]].concat(),
        ),
        (
            Message::Acknowledgment(acknowledgment),
            [&[15, 0, 0x80, 0], &HOME[..], &[10, 11, 12, 13]].concat(),
        ),
    ]
}

#[test]
fn each_message_has_the_bytes_of_its_figure() {
    for (message, bytes) in messages() {
        assert_eq!(message.emit(), bytes, "{message:?}");
        let (read, mut extensions) = parse(&bytes, false).unwrap();
        assert_eq!((read, extensions.next()), (message, None));
        for len in 0..bytes.len() {
            assert_eq!(parse(&bytes[..len], false).unwrap_err(), MobilityError::Truncated);
        }
    }
    assert_eq!(parse(&[2; 40], false).unwrap_err(), MobilityError::Type(2));
}

#[test]
fn with_ipv6_the_addresses_have_sixteen_bytes() {
    let home: IpAddr = "2001:db8::7".parse().unwrap();
    let of = Acknowledgment { informs: false, home, identifier: 1 };
    let bytes = Message::Acknowledgment(of).emit();
    assert_eq!(bytes.len(), 4 + 16 + 4);
    assert_eq!(parse(&bytes, true).unwrap().0, Message::Acknowledgment(of));
    // An address of the other version cannot be written.
    let home_agent = v4(AGENT);
    let reply = Reply { code: 0, lifetime: 1, home, home_agent, identification: 2 };
    let bytes = Message::Reply(reply).emit();
    let Message::Reply(read) = parse(&bytes, true).unwrap().0 else { panic!() };
    assert_eq!(read.home_agent, IpAddr::from(Ipv6Addr::UNSPECIFIED));
}

#[test]
fn extensions_have_the_bytes_of_their_figures_and_cover_what_is_before() {
    let mut bytes = messages()[3].1.clone();
    let fields = bytes.len();
    push_vendor(&mut bytes, 0x0102, b"abc");
    let vendor = [38, 0, 0, 9, 0, 0, 0x7e, 0xd9, 1, 2, b'a', b'b', b'c'];
    assert_eq!(bytes[fields..], vendor);
    bytes.extend([0, 0, 130, 1, 9]);
    let signed = bytes.len();
    push_authentication(&mut bytes, Ends::ForeignHome, 300, 4, |covered| {
        (covered.len() as u32).to_be_bytes()
    });
    let covered = signed + 6;
    assert_eq!(bytes[signed..], [34, 8, 0, 0, 1, 44, 0, 0, 0, covered as u8]);

    let (_, extensions) = parse(&bytes, false).unwrap();
    let authentication = Authentication {
        ends: Ends::ForeignHome,
        spi: 300,
        covered: &bytes[..covered],
        authenticator: &[0, 0, 0, covered as u8],
    };
    let expected = [
        Extension::Vendor { kind: 0x0102, value: b"abc" },
        Extension::Other(130),
        Extension::Authentication(authentication),
    ];
    assert_eq!(extensions.collect::<Vec<_>>(), expected);
}

#[test]
fn an_extension_that_is_unknown_or_cut_short_is_refused() {
    let refused = |extension: &[u8]| {
        let bytes = [&messages()[3].1, extension].concat();
        parse(&bytes, false).unwrap_err()
    };
    for (extension, error) in [
        (&[40, 0][..], MobilityError::Unknown(40)),
        (&[38, 0, 0, 6, 0, 0, 0, 9, 0, 1], MobilityError::Vendor(9)),
        (&[38, 0, 0, 5, 0, 0, 0x7e, 0xd9, 0], MobilityError::Extension(38)),
        (&[38, 0, 1, 0, 0, 0, 0x7e, 0xd9, 0, 1], MobilityError::Extension(38)),
        (&[38, 0, 0], MobilityError::Extension(38)),
        (&[32, 3, 0, 0, 0], MobilityError::Extension(32)),
        (&[34, 20, 0, 0, 0, 0], MobilityError::Extension(34)),
        (&[129], MobilityError::Extension(129)),
    ] {
        assert_eq!(refused(extension), error, "{extension:?}");
    }
}

#[test]
fn a_vendor_extension_is_never_longer_than_its_length_field() {
    let mut bytes = messages()[3].1.clone();
    push_vendor(&mut bytes, 1, &vec![7; 70_000]);
    let (_, mut extensions) = parse(&bytes, false).unwrap();
    let Some(Extension::Vendor { value, .. }) = extensions.next() else { panic!() };
    assert_eq!((value.len(), extensions.next()), (65_529, None));
}

#[test]
fn an_extension_that_others_skip_has_the_bytes_of_its_figure() {
    let mut bytes = messages()[1].1.clone();
    let fields = bytes.len();
    push_hint(&mut bytes, 0x0102, b"abc");
    assert_eq!(bytes[fields..], [134, 11, 0, 0, 0, 0, 0x7e, 0xd9, 1, 2, b'a', b'b', b'c']);
    let first = |bytes: &[u8]| match parse(bytes, false).unwrap().1.next() {
        Some(Extension::Hint { kind, value }) => Some((kind, value.to_vec())),
        Some(Extension::Other(134)) => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(first(&bytes), Some((0x0102, b"abc".to_vec())));
    // Of another vendor, and too short for a vendor: skipped.
    bytes[fields + 7] ^= 1;
    assert_eq!(first(&bytes), None);
    bytes.truncate(fields);
    bytes.extend([134, 3, 0, 0, 0]);
    assert_eq!(first(&bytes), None);
    bytes.truncate(fields);
    push_hint(&mut bytes, 1, &[7; 300]);
    assert_eq!(first(&bytes), Some((1, vec![7; 247])));
}

#[test]
fn a_timestamp_counts_from_1900() {
    assert_eq!(timestamp(Duration::ZERO), 2_208_988_800 << 32);
    let half = timestamp(Duration::from_millis(1_500));
    assert_eq!(half, 2_208_988_801 << 32 | 0x8000_0000);
    // 2036-02-07 06:28:16 UTC.
    assert_eq!(timestamp(Duration::from_secs(2_085_978_496)), 0);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        start in prop::sample::select(vec![1_u8, 3, 7, 15, 0]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        v6: bool,
    ) {
        bytes.insert(0, start);
        if let Ok((message, extensions)) = parse(&bytes, v6) {
            // What was read is written again, except for reserved bits.
            let written = message.emit();
            prop_assert_eq!(parse(&written, v6).unwrap().0, message);
            prop_assert!(bytes.len() >= written.len());
            prop_assert!(extensions.count() <= bytes.len());
        }
    }

    #[test]
    fn any_extensions_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let bytes = [&messages()[3].1[..], &bytes].concat();
        if let Ok((_, extensions)) = parse(&bytes, false) {
            for extension in extensions {
                if let Extension::Authentication(of) = extension {
                    prop_assert!(bytes.starts_with(of.covered));
                }
            }
        }
    }
}
