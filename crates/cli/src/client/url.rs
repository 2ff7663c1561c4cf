//! URLs of the scheme http (RFC 9110 section 4.2.1) and of schemes for other transports.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::str::FromStr;

use hyper::Uri;

use super::place::Place;
use crate::upload;

/// The transport of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    /// TCP over the command's stack; the only scheme of `get` and `put`.
    Http,
    /// RRTP over the kernel's UDP.
    Rrtp,
    /// The kernel's TCP.
    Tcp,
    /// TCP over the command's stack.
    Airtcp,
}

impl Scheme {
    /// Returns the scheme as written in a URL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Rrtp => "rrtp",
            Self::Tcp => "tcp",
            Self::Airtcp => "airtcp",
        }
    }
}

/// A URL whose scheme is `rrtp`, `tcp` or `airtcp`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct QuickUrl(pub(crate) Url);

impl FromStr for QuickUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let begin = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let scheme = [Scheme::Rrtp, Scheme::Tcp, Scheme::Airtcp]
            .into_iter()
            .find(|scheme| begin.as_deref() == Some(scheme.name()))
            .ok_or(
                "a URL must begin with rrtp://, tcp:// or airtcp://; for example rrtp://10.0.0.1:8000/file",
            )?;
        let rest = &text[scheme.name().len()..];
        let url = format!("http{rest}").parse::<Url>();
        let url = url.map_err(|why| why.replace("http://", &format!("{}://", scheme.name())))?;
        Ok(Self(Url { scheme, ..url }))
    }
}

/// A URL without a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Url {
    scheme: Scheme,
    place: Place,
    /// Path and query.
    target: String,
}

impl Url {
    /// Returns the scheme.
    pub(super) const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns host and port of the server.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the address to listen on, if the host is an IP address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.place.host.parse().ok().map(|ip| SocketAddr::new(ip, self.place.port))
    }

    /// Returns the request target (RFC 9112 section 3.2.1).
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Returns the URL at which the server reports an interrupted upload to this URL, and accepts
    /// the rest.
    pub(super) fn upload(&self) -> Self {
        let joint = if self.target.contains('?') { '&' } else { '?' };
        Self { target: format!("{}{joint}{}", self.target, upload::QUERY), ..self.clone() }
    }

    /// Returns the URL without the query of [`upload`](Self::upload), which a server that redirects
    /// may keep or drop.
    pub(super) fn without_upload(mut self) -> Self {
        let bare = self.target.strip_suffix(upload::QUERY);
        if let Some(bare) = bare.and_then(|bare| bare.strip_suffix(['?', '&'])) {
            self.target.truncate(bare.len());
        }
        self
    }

    /// Returns the value of the field Host: the port is left out if it is 80.
    pub(super) fn authority(&self) -> String {
        let whole = self.place.to_string();
        whole.strip_suffix(":80").map_or(whole.clone(), str::to_owned)
    }

    /// Resolves the field Location of a response from this URL (RFC 3986 section 5.2; dot segments
    /// are left to the server). A server that is reached over TCP may use http for the same scheme.
    ///
    /// # Errors
    /// It is not a URL, or has another scheme.
    pub(super) fn join(&self, location: &str) -> Result<Self, String> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = location.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let scheme =
            scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let own = self.scheme;
        let rest = match scheme.as_deref() {
            None => location.strip_prefix("//"),
            Some(scheme) => {
                let is_own = scheme == own.name() || (scheme == "http" && own != Scheme::Rrtp);
                if own == Scheme::Http || scheme == "https" {
                    return location.parse();
                }
                let rest = location[scheme.len()..].strip_prefix("://").filter(|_| is_own);
                Some(rest.ok_or_else(|| {
                    format!("the URL does not begin with {}://, like the request", own.name())
                })?)
            }
        };
        if let Some(rest) = rest {
            let url: Self = format!("http://{rest}").parse()?;
            return Ok(Self { scheme: own, ..url });
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let target = match location {
            "" => self.target.clone(),
            _ if location.starts_with('/') => location.to_owned(),
            _ if location.starts_with('?') => format!("{path}{location}"),
            _ => format!("{}/{location}", path.rsplit_once('/').map_or("", |(above, _)| above)),
        };
        let url: Self = format!("http://{}{target}", self.authority()).parse()?;
        Ok(Self { scheme: self.scheme, ..url })
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "for example http://10.0.0.1/file";
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http") => {}
            Some("https") => {
                return Err(format!("https is not supported (no TLS): use http; {EXAMPLE}"));
            }
            _ => return Err(format!("a URL must begin with http://; {EXAMPLE}")),
        }
        let authority = text.split("://").nth(1).unwrap_or_default();
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(format!("the host is missing; {EXAMPLE}"));
        }
        if authority.parse::<Ipv6Addr>().is_ok() {
            return Err(format!("write an IPv6 address in brackets: http://[{authority}]/"));
        }
        let uri: Uri = text.parse().map_err(|error| {
            format!(
                "not a URL ({error}): write a space as %20, and an IPv6 address in brackets; {EXAMPLE} or \
                 http://[fd00::1]/file"
            )
        })?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(format!(
                "user names are not supported: remove the part before @; {EXAMPLE}"
            ));
        }
        let host = uri.host().unwrap_or_default();
        let port = match authority.strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) {
            None | Some("") => Some(80),
            Some(port) => port.parse().ok().filter(|port| *port > 0),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(format!("the host is missing; {EXAMPLE}"));
        }
        let Some(port) = port else {
            return Err(format!(
                "the port must be a number from 1 to 65535; for example http://{host}:8000{}",
                uri.path()
            ));
        };
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let place = Place { host: host.to_owned(), port };
        Ok(Self { scheme: Scheme::Http, place, target: target.to_owned() })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.name(), self.authority(), self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn urls_are_read_and_shown() {
        for (text, shown) in [
            ("http://10.0.0.1/a/b?c=d", "http://10.0.0.1/a/b?c=d"),
            ("HTTP://a.example:80", "http://a.example/"),
            ("http://[fd00::1]:8080/x#y", "http://[fd00::1]:8080/x"),
        ] {
            assert_eq!(url(text).to_string(), shown);
        }
        assert_eq!(url("http://[fd00::1]/").place().to_string(), "[fd00::1]:80");
    }

    #[test]
    fn an_upload_is_beside_its_target() {
        for (target, upload) in [
            ("http://a.example/b", "http://a.example/b?upload"),
            ("http://a.example/b?c=d", "http://a.example/b?c=d&upload"),
        ] {
            assert_eq!(url(target).upload(), url(upload));
            assert_eq!(url(upload).without_upload(), url(target));
            assert_eq!(url(target).without_upload(), url(target));
        }
        assert_eq!(url("http://a.example/upload").without_upload().target(), "/upload");
    }

    #[test]
    fn what_is_no_url_of_ours_is_refused_with_the_reason() {
        let why = |text: &str| text.parse::<Url>().unwrap_err();
        assert!(why("https://a.example/").contains("no TLS"));
        assert!(why("ftp://a.example/").contains("must begin with http://"));
        assert!(why("10.0.0.1/file").contains("must begin with http://"));
        let port = "rrtp://127.0.0.1:0".parse::<QuickUrl>().unwrap_err();
        assert!(port.ends_with("; for example rrtp://127.0.0.1:8000/"), "{port}");
        assert!(why("http://me@a.example/").contains("before @"));
        assert!(why("http://fd00::1/x").contains("in brackets: http://[fd00::1]/"));
        assert!(why("http://a.example/a b").contains("a space as %20"));
        assert!(why("http://[fd00::1/x").contains("an IPv6 address in brackets"));
        for bad in ["http://a:0/", "http://a:99999/", "http://a:80x/"] {
            let why = why(bad);
            assert!(why.ends_with("from 1 to 65535; for example http://a:8000/"), "{bad}: {why}");
        }
        for bad in ["http://", "http:///x"] {
            assert!(why(bad).contains("for example"), "{bad}");
        }
    }

    #[test]
    fn a_redirection_is_relative_to_its_url() {
        let from = url("http://a.example:8000/b/c?d=e");
        for (location, target) in [
            ("http://other/x", "http://other/x"),
            ("//other:81/x", "http://other:81/x"),
            ("/x/y", "http://a.example:8000/x/y"),
            ("x", "http://a.example:8000/b/x"),
            ("?f", "http://a.example:8000/b/c?f"),
            ("/x#y", "http://a.example:8000/x"),
        ] {
            assert_eq!(from.join(location).unwrap().to_string(), target, "{location}");
        }
        assert!(from.join("https://a.example/").unwrap_err().contains("TLS"));
    }

    #[test]
    fn a_redirection_does_not_change_what_carries_the_file() {
        let from = |scheme: &str| format!("{scheme}://a:81/b").parse::<QuickUrl>().unwrap().0;
        for (scheme, location, target) in [
            ("rrtp", "/x", "rrtp://a:81/x"),
            ("rrtp", "//c/x", "rrtp://c/x"),
            ("rrtp", "RRTP://c/x", "rrtp://c/x"),
            ("tcp", "tcp://c:82/x", "tcp://c:82/x"),
            ("tcp", "http://c/x", "tcp://c/x"),
            ("airtcp", "http://c/x", "airtcp://c/x"),
        ] {
            assert_eq!(from(scheme).join(location).unwrap().to_string(), target, "{location}");
        }
        for (scheme, location) in [
            ("rrtp", "http://c/x"),
            ("rrtp", "tcp://c/x"),
            ("tcp", "rrtp://c/x"),
            ("tcp", "ftp://c/"),
        ] {
            let why = from(scheme).join(location).unwrap_err();
            assert_eq!(why, format!("the URL does not begin with {scheme}://, like the request"));
        }
        assert!(from("tcp").join("https://c/").unwrap_err().contains("TLS"));
        assert!(url("http://a/").join("tcp://c/").unwrap_err().contains("must begin with http://"));
    }
}
