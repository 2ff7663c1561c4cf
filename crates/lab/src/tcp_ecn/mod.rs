//! TCP-ECN: Krishnan, *Enhancing TCP performance in wired-cum-wireless networks*, San Jose State
//! University 2006.

mod course;
pub(crate) mod disconnect;
pub(crate) mod fig10;
pub(crate) mod fig11;
pub(crate) mod fig12;
pub(crate) mod fig13;
pub(crate) mod fig17;
pub(crate) mod fig20;
pub(crate) mod fig22;
pub(crate) mod fig24;
pub(crate) mod fig31;
mod fixed_host;
mod policies;
mod progress;
pub(crate) mod real;
mod real_path;
mod senders;
mod sequence;
mod tries;
