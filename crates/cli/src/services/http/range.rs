//! Parses the requested range of a file.

use hyper::StatusCode;

use super::Refusal;

/// Parses the header `Range` for a file of `length` bytes, and returns (start, length). `None`
/// means that the whole file is sent: for other units, several ranges and invalid values (RFC 9110
/// section 14.2).
///
/// # Errors
/// 416 for a range that is not in the file.
pub(super) fn part(header: &str, length: u64) -> Result<Option<(u64, u64)>, Refusal> {
    let Some((first, last)) = header.strip_prefix("bytes=").and_then(|set| set.split_once('-'))
    else {
        return Ok(None);
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => {
            Some((first, (last - first).saturating_add(1)))
        }
        (Some(first), None) if last.trim().is_empty() => Some((first, u64::MAX)),
        // A suffix longer than the file is the whole file.
        (None, Some(suffix)) if first.trim().is_empty() => {
            Some((length.saturating_sub(suffix), suffix))
        }
        _ => None,
    };
    let Some((start, most)) = part else { return Ok(None) };
    if start >= length || most == 0 {
        return Err(Refusal::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            format!("the file has {length} bytes"),
        ));
    }
    Ok(Some((start, most.min(length - start))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_to_the_file() {
        let part = |header| part(header, 100).unwrap();
        assert_eq!(part("bytes=0-0"), Some((0, 1)));
        assert_eq!(part("bytes=90-"), Some((90, 10)));
        assert_eq!(part("bytes=90-1000"), Some((90, 10)));
        assert_eq!(part("bytes=-7"), Some((93, 7)));
        assert_eq!(part("bytes=-700"), Some((0, 100)));
        for all in ["bytes=0-1,5-6", "lines=0-1", "bytes=5-4", "bytes=x-", "bytes=-", "bytes", ""] {
            assert_eq!(part(all), None, "{all}");
        }
    }

    #[test]
    fn parts_outside_are_refused() {
        for (header, length) in [("bytes=100-", 100), ("bytes=-0", 100), ("bytes=0-0", 0)] {
            let refusal = part(header, length).unwrap_err();
            assert_eq!(refusal.status, StatusCode::RANGE_NOT_SATISFIABLE, "{header}");
        }
        let refusal = part("bytes=18446744073709551615-18446744073709551615", 100).unwrap_err();
        assert_eq!(refusal.status, StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(part("bytes=0-18446744073709551615", 100).unwrap(), Some((0, 100)));
    }
}
