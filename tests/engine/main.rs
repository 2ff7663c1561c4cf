//! The whole engine, two hosts and a path, in virtual time.

mod corruption;
mod delayed_response;
mod goodput;
mod liar;
mod parallel;
mod properties;
mod receive_window;
mod transfer;
mod wire;
mod world;
