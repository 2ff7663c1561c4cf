//! The page as one HTML file. Its content security policy allows only its own script, and
//! connections only to its server.

use std::sync::LazyLock;

use data_encoding::BASE64;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) static PAGE: LazyLock<Page> = LazyLock::new(Page::new);

#[derive(Debug)]
pub(super) struct Page {
    pub(super) html: String,
    /// The content security policy.
    pub(super) policy: HeaderValue,
}

impl Page {
    fn new() -> Self {
        let hash = |text: &str| BASE64.encode(&Sha256::digest(text));
        let policy = format!(
            "default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri \
             'none'; form-action 'none'; frame-ancestors 'none'",
            hash(STYLE),
            hash(SCRIPT)
        );
        Self {
            html: HTML.replace("STYLE", STYLE).replace("SCRIPT", SCRIPT),
            policy: HeaderValue::try_from(policy).expect("Base64 is ASCII"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script_and_the_style_and_no_other_source() {
        let Page { html, policy } = &*PAGE;
        let policy = policy.to_str().unwrap();
        for (tag, kind) in [("script", "script-src"), ("style", "style-src")] {
            let (_, inside) = html.split_once(&format!("<{tag}>")).unwrap();
            let (inside, _) = inside.split_once(&format!("</{tag}>")).unwrap();
            let hash = BASE64.encode(&Sha256::digest(inside));
            assert!(policy.contains(&format!("{kind} 'sha256-{hash}'")), "{tag}");
        }
        // The namespace of SVG is an identifier, not a source.
        let html = html.replace("http://www.w3.org/2000/svg", "");
        for source in ["http:", "https:", "url(", "@import", "innerHTML", " style=", "src="] {
            assert!(!html.contains(source), "{source}");
        }
    }
}
