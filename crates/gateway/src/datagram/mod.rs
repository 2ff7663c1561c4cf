//! UDP through the carrier.
