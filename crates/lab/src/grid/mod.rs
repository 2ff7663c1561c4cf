//! Every combination over the same links, beside the kernel's senders.

pub(crate) mod lossy;
