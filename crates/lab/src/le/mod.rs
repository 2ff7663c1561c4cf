//! LE: Kang and Mo, "Implementation and evaluation of a new TCP loss recovery architecture",
//! EURASIP JWCN 2012:149.

mod claims;
mod clamped;
mod controls;
mod curve;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig9;
pub(crate) mod fig9_real;
mod network;
mod testbed;
mod together;
mod variants;
mod window;
