//! Krishnan, *Enhancing TCP performance in wired-cum-wireless networks*, San Jose State University 2006 (TCP-ECN).

pub(crate) mod disconnect;
pub(crate) mod fig31;
mod fixed_host;
pub(crate) mod real;
mod real_path;
