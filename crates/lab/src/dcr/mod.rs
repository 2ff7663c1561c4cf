//! TCP-DCR: Bhandarkar and Reddy, "TCP-DCR: Making TCP robust to non-congestion events".

pub(crate) mod table16;
