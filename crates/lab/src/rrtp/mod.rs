//! RRTP: Wang, "A User-level, Reliable and Reconfigurable Transport Layer Protocol", Waterloo 2009.

pub(crate) mod fig41;
pub(crate) mod fig46;
mod network;
pub(crate) mod table32;
pub(crate) mod table42;
pub(crate) mod table46;
pub(crate) mod table51;
pub(crate) mod table52;
