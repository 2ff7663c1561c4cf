//! `--carrier`: how packets get to the other gateway.

use std::str::FromStr;

use crate::value;

pub(super) const WIREGUARD: &str = "wireguard";
pub(super) const TUN: &str = "tun";

/// `wireguard`, or `tun[:DEVICE]`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum CarrierName {
    /// Encrypted, in UDP.
    #[default]
    Wireguard,
    /// Unencrypted, through this TUN device.
    Tun(Option<String>),
}

impl FromStr for CarrierName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((TUN, device)) => Ok(Self::Tun(Some(value::tun(device)?))),
            None if text == TUN => Ok(Self::Tun(None)),
            None if text == WIREGUARD => Ok(Self::Wireguard),
            _ => Err(format!("`{text}` is no carrier: write wireguard, tun, or tun:DEVICE")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_have_names_and_a_device_may_follow_tun() {
        let read = |text: &str| text.parse::<CarrierName>();
        assert_eq!(read("wireguard"), Ok(CarrierName::default()));
        assert_eq!(read("tun"), Ok(CarrierName::Tun(None)));
        assert_eq!(read("tun:tun7"), Ok(CarrierName::Tun(Some("tun7".to_owned()))));
        for (text, why) in [
            ("udp", "write wireguard, tun, or tun:DEVICE"),
            ("wireguard:tun7", "is no carrier"),
            ("tun:a b", "1 to 15 bytes"),
            ("", "is no carrier"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
