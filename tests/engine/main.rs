//! The whole engine in virtual time: two hosts and a path.

mod bulk;
mod corruption;
mod delayed_response;
mod ecn;
mod goodput;
mod liar;
mod parallel;
mod properties;
mod receive_window;
mod slow_start;
mod transfer;
mod wire;
mod world;
