//! Keeps a session's process to its own folder, by Landlock where the system has it.
//!
//! Functions that a session calls keep to its folder by themselves ([`super::folder`]); code that it loads need not. The system sees to
//! that: such a process writes, makes and removes files beneath the session's folder alone, opens no connections unless it may lead on to
//! other servers, and signals nobody outside. It reads what the server's account may read: libraries lie anywhere.
//!
//! What a process is kept to it cannot leave, and neither can what it starts.

use relaxide_ffi::{Error, ErrorKind};

use super::session::Grant;

/// Whether a session's process is kept to its folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// It is not: TVM's sessions may do what the server's account may.
    #[default]
    Nowhere,
    /// It is, on a system that can do so.
    WherePossible,
    /// It is, or there is no session.
    Always,
}

impl Confinement {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Confinement::Nowhere => "nowhere",
            Confinement::WherePossible => "where possible",
            Confinement::Always => "always",
        }
    }

    /// What a word says.
    pub fn parse(word: &str) -> Option<Confinement> {
        [Confinement::Nowhere, Confinement::WherePossible, Confinement::Always]
            .into_iter()
            .find(|kind| kind.name() == word)
    }
}

/// Keeps this process to the folder of a session. False if the system cannot, which is an error where it must.
pub fn confine(grant: &Grant) -> Result<bool, Error> {
    if grant.confinement == Confinement::Nowhere {
        return Ok(true);
    }
    let is_confined = restrict(grant).map_err(|why| {
        Error::new(ErrorKind::OSError, format!("cannot keep the session to {}: {why}", grant.folder.display()))
    })?;
    if !is_confined && grant.confinement == Confinement::Always {
        let message = "this system cannot keep sessions to their folders (Landlock, of Linux 5.13 and later): serve without --confined";
        return Err(Error::new(ErrorKind::RuntimeError, message));
    }
    Ok(is_confined)
}

/// Why a process cannot be kept to a folder, on a system that could.
#[cfg(target_os = "linux")]
#[derive(Debug, thiserror::Error)]
enum NotConfined {
    #[error(transparent)]
    Rules(#[from] landlock::RulesetError),
    #[error(transparent)]
    Path(#[from] landlock::PathFdError),
}

#[cfg(not(target_os = "linux"))]
type NotConfined = std::convert::Infallible;

#[cfg(target_os = "linux")]
fn restrict(grant: &Grant) -> Result<bool, NotConfined> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetStatus, Scope,
    };
    /// What was there when this was written; a system that knows less does what it can.
    const ABI: ABI = ABI::V6;
    let writes = AccessFs::from_write(ABI);
    let in_place = AccessFs::WriteFile | AccessFs::Truncate;
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writes)?;
    if !(grant.policy.everything || grant.policy.connect) {
        rules = rules.handle_access(AccessNet::from_all(ABI))?;
    }
    let mut rules = rules.scope(Scope::from_all(ABI))?.create()?;
    let folder = PathFd::new(&grant.folder)?;
    rules = rules.add_rule(PathBeneath::new(folder, writes))?;
    // Drivers are written to, and what threads of a process share lies there as files.
    for (path, access) in [("/dev", in_place | AccessFs::IoctlDev), ("/dev/shm", writes)] {
        if let Ok(place) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(place, access))?;
        }
    }
    if let Some(log) = &grant.log
        && let Ok(place) = PathFd::new(log)
    {
        rules = rules.add_rule(PathBeneath::new(place, in_place))?;
    }
    let status = rules.restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(not(target_os = "linux"))]
fn restrict(_grant: &Grant) -> Result<bool, NotConfined> {
    Ok(false)
}
