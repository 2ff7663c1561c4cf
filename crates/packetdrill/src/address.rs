//! Conversion of socket addresses from and to C.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::errno::Errno;
use nix::libc::{AF_INET, AF_INET6};

use crate::memory::Address;

/// The sizes of `struct sockaddr_in` and `struct sockaddr_in6` in bytes.
const V4: usize = 16;
const V6: usize = 28;

/// The size of `struct sockaddr_storage` in bytes: as in Linux, longer addresses are rejected.
const LONGEST: u32 = 128;

/// Reads a `struct sockaddr`. An IPv4-mapped IPv6 address becomes an IPv4 address.
pub(crate) fn read(at: Address, len: u32) -> Result<SocketAddr, Errno> {
    if len > LONGEST {
        return Err(Errno::EINVAL);
    }
    let head: [u8; 4] = at.array()?;
    let port = u16::from_be_bytes([head[2], head[3]]);
    let ip: IpAddr = match i32::from(u16::from_ne_bytes([head[0], head[1]])) {
        AF_INET if len as usize >= V4 => Ipv4Addr::from(at.at(4).array::<4>()?).into(),
        AF_INET6 if len as usize >= V6 => {
            IpAddr::from(Ipv6Addr::from(at.at(8).array::<16>()?)).to_canonical()
        }
        AF_INET | AF_INET6 => return Err(Errno::EINVAL),
        _ => return Err(Errno::EAFNOSUPPORT),
    };
    Ok(SocketAddr::new(ip, port))
}

/// Writes the address of a socket of `domain`, cut to the available length, and its full length;
/// nothing if `at` is null.
pub(crate) fn write(
    address: SocketAddr,
    domain: i32,
    at: Address,
    len_at: Address,
) -> Result<(), Errno> {
    if at.is_null() {
        return Ok(());
    }
    let bytes = encode(address, domain);
    let room = usize::try_from(len_at.int()?).map_err(|_| Errno::EINVAL)?;
    at.write(&bytes[..bytes.len().min(room)])?;
    len_at.write(&(bytes.len() as u32).to_ne_bytes())
}

fn encode(address: SocketAddr, domain: i32) -> Vec<u8> {
    let mut bytes = (domain as u16).to_ne_bytes().to_vec();
    bytes.extend(address.port().to_be_bytes());
    match (domain, address.ip()) {
        (AF_INET, IpAddr::V4(ip)) => bytes.extend(ip.octets()),
        (_, IpAddr::V4(ip)) => {
            bytes.extend([0; 4]);
            bytes.extend(ip.to_ipv6_mapped().octets());
        }
        (_, IpAddr::V6(ip)) => {
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
        }
    }
    bytes.resize(if domain == AF_INET { V4 } else { V6 }, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let cases = [
            ("192.0.2.1:8080", AF_INET, 16),
            ("192.0.2.1:8080", AF_INET6, 28),
            ("[fd00::1]:80", AF_INET6, 28),
        ];
        for (text, domain, len) in cases {
            let address: SocketAddr = text.parse().unwrap();
            let bytes = encode(address, domain);
            assert_eq!(bytes.len(), len);
            let at = Address::from(bytes.as_ptr().cast::<std::ffi::c_void>());
            assert_eq!(read(at, len as u32), Ok(address));
            assert_eq!(read(at, 4), Err(Errno::EINVAL));
            assert_eq!(read(at, u32::MAX), Err(Errno::EINVAL));
        }
        let unknown = [9u8, 9, 0, 0];
        let at = Address::from(unknown.as_ptr().cast::<std::ffi::c_void>());
        assert_eq!(read(at, 4), Err(Errno::EAFNOSUPPORT));
    }
}
