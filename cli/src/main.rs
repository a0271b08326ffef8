//! `waybill`: the command line. This file wires; what a command does stands under [`commands`].

mod backend;
mod commands;
mod exit;
mod out;
mod rehearse;
mod serve;
mod show;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let line = commands::CommandLine::parse();
    match line.run() {
        Ok(exit) => exit.into(),
        Err(failure) => {
            out::complain(&failure);
            failure.exit.into()
        }
    }
}
