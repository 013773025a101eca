//! Numbers as providers write them: digits decide, and nothing overflows.

/// A decimal number times ten to the power of `scale`, a rest rounded up; digits before and after the point, nothing else:
/// no sign, no exponent, no `NaN`. One beyond 64 bits is the largest.
pub(super) fn scaled(token: &str, scale: usize) -> Option<u64> {
    if let Some(value) = short(token, scale) {
        return Some(value);
    }
    let (whole, fraction) = match token.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (token, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !fraction.is_none_or(digits) {
        return None;
    }
    let fraction = fraction.unwrap_or_default();
    let scaled = whole
        .bytes()
        .chain(fraction.bytes().chain(std::iter::repeat(b'0')).take(scale));
    let value = scaled.fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    let rest = fraction.bytes().skip(scale).any(|digit| digit != b'0');
    Some(value.saturating_add(u64::from(rest)))
}

/// A whole number of at most ten digits, which is what headers mostly hold; nothing of it can overflow.
fn short(token: &str, scale: usize) -> Option<u64> {
    let scale = u32::try_from(scale).ok().filter(|scale| *scale <= 9)?;
    if token.is_empty() || token.len() > 10 {
        return None;
    }
    let mut value = 0;
    for byte in token.bytes() {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(byte - b'0');
    }
    value.checked_mul(10_u64.pow(scale))
}

/// What remains of a limit, or how much it is: a decimal number that may be negative, rounded down; of `100;w=60` the part
/// before the parameters.
pub(super) fn amount(token: &str) -> Option<i64> {
    if let Some(value) = short(token, 0) {
        return i64::try_from(value).ok();
    }
    let token = token.split(';').next().unwrap_or_default().trim_ascii();
    let (negative, digits) = match token.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, token),
    };
    let rounded_up = scaled(digits, 0)?;
    let down = match digits.split_once('.') {
        Some((whole, _)) => scaled(whole, 0)?,
        None => rounded_up,
    };
    let size = i64::try_from(down).unwrap_or(i64::MAX);
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_up_and_never_down() {
        for (token, scale, expected) in [
            ("0", 3, Some(0)),
            ("30", 3, Some(30_000)),
            ("9999999999", 9, Some(9_999_999_999_000_000_000)),
            ("99999999999", 9, Some(u64::MAX)),
            ("0000000000000000000030", 3, Some(30_000)),
            ("0.0004", 3, Some(1)),
            ("1.0001", 3, Some(1001)),
            ("18446744073709551615", 0, Some(u64::MAX)),
            ("18446744073709551616", 0, Some(u64::MAX)),
            ("", 3, None),
            ("+3", 3, None),
            ("3 ", 3, None),
        ] {
            assert_eq!(scaled(token, scale), expected, "{token:?}");
        }
    }

    #[test]
    fn what_remains_may_be_negative_or_broken_into_parts() {
        for (token, expected) in [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("0.9", Some(0)),
            ("-3", Some(-3)),
            ("412", Some(412)),
            ("100;w=60", Some(100)),
            (" 7 ", Some(7)),
            ("99999999999999999999999", Some(i64::MAX)),
            ("", None),
            ("-", None),
            ("unlimited", None),
            ("1e3", None),
            ("4.", None),
        ] {
            assert_eq!(amount(token), expected, "{token:?}");
        }
    }
}
