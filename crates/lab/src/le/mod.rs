//! LE: Kang and Mo, "Implementation and evaluation of a new TCP loss recovery architecture", EURASIP JWCN 2012:149.

pub(crate) mod fig4;
mod sack1;
mod window;
