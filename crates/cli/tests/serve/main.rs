//! `relaxide serve` over loopback: both protocols, batches, limits, workers that die, models that change, and the end.

mod batches;
mod grpc;
mod http;
mod limits;
mod models;
mod padding;
mod reload;
mod repository;
mod server;
mod workers;
