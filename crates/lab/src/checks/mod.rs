//! Checks of our own tools: the link emulator and the simulator against theory and real packets.

pub(crate) mod bit_errors;
pub(crate) mod bursts;
pub(crate) mod cubic;
pub(crate) mod delay;
pub(crate) mod fairness;
pub(crate) mod full_pipe;
pub(crate) mod half_duplex;
pub(crate) mod kernel_senders;
pub(crate) mod long_haul;
pub(crate) mod loss;
pub(crate) mod mathis;
pub(crate) mod md1;
pub(crate) mod packets;
pub(crate) mod rate;
pub(crate) mod trace;
