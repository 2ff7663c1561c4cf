//! Balan et al., TCP HACK, 2002.

mod course;
mod factor;
pub(crate) mod fig12;
pub(crate) mod fig20;
pub(crate) mod fig26;
pub(crate) mod fig7;
mod figure;
pub(crate) mod long_path;
mod notified;
pub(crate) mod section7;
pub(crate) mod table1;
mod trail;
mod unread;
pub(crate) mod wire;
