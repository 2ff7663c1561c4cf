//! Commands to copy into a shell.

/// Quotes an argument for a shell, with single quotes if necessary.
pub(crate) fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+@%-".contains(c);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

/// Whether the command of a record runs only airtcp.
pub(crate) fn is_ours(command: &str) -> bool {
    command.starts_with("airtcp ")
        && !command.contains([';', '|', '&', '$', '<', '>', '`', '\n', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_a_shell_would_read_them_otherwise() {
        for plain in ["run/scenario-1.toml", "rack/cubic,sack/reno", "a=1:2+3@4%"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("rate 2mbit"), "'rate 2mbit'");
        assert_eq!(quoted("\"; $(reboot) `x` it's"), r#"'"; $(reboot) `x` it'\''s'"#);
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn other_commands_are_not_shown() {
        assert!(is_ours("airtcp lab run 'le/*'"));
        for command in ["", "reboot", "airtcpx", "airtcp lab run x; reboot", "airtcp x\nreboot"] {
            assert!(!is_ours(command), "{command}");
        }
    }
}
