//! The whole engine, two hosts and a path, in virtual time.

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
