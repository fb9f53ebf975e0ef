//! What of a tracker survives a restart: how much each key gave, and whose turn it is.
//!
//! Servers offer themselves again and clients ask again by themselves; what they cannot know is kept here, in SQLite.

use std::path::Path;

use relaxide_ffi::{Error, ErrorKind};
use rusqlite::{Connection, params};

use super::queue::History;

/// The state on disk.
pub struct StateOnDisk(Connection);

fn failed(error: &rusqlite::Error) -> Error {
    Error::new(ErrorKind::OSError, format!("the tracker's state cannot be used: {error}"))
}

impl StateOnDisk {
    /// Opens or makes it.
    pub fn open(path: &Path) -> Result<StateOnDisk, Error> {
        let opened = Connection::open(path).and_then(|connection| {
            connection.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                 CREATE TABLE IF NOT EXISTS queue (key TEXT PRIMARY KEY, handed INTEGER NOT NULL);
                 CREATE TABLE IF NOT EXISTS turn (key TEXT, user TEXT, number INTEGER NOT NULL, PRIMARY KEY (key, user));",
            )?;
            Ok(connection)
        });
        opened.map(StateOnDisk).map_err(|error| failed(&error).context(path.display()))
    }

    /// What it holds.
    pub fn history(&self) -> Result<History, Error> {
        let read = || -> rusqlite::Result<History> {
            let mut queues = self.0.prepare("SELECT key, handed FROM queue")?;
            let mut turns = self.0.prepare("SELECT user, number FROM turn WHERE key = ?")?;
            let mut history = Vec::new();
            for row in queues.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))? {
                let (key, handed) = row?;
                let turns = turns.query_map([&key], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
                history.push((key, handed as u64, turns.collect::<Result<Vec<_>, _>>()?));
            }
            Ok(history)
        };
        read().map_err(|error| failed(&error))
    }

    /// Keeps a state.
    pub fn keep(&mut self, history: &History) -> Result<(), Error> {
        let mut write = || -> rusqlite::Result<()> {
            let change = self.0.transaction()?;
            for (key, handed, turns) in history {
                change.execute("INSERT OR REPLACE INTO queue VALUES (?, ?)", params![key, *handed as i64])?;
                for (user, number) in turns {
                    change
                        .execute("INSERT OR REPLACE INTO turn VALUES (?, ?, ?)", params![key, user, *number as i64])?;
                }
            }
            change.commit()
        };
        write().map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.sqlite");
        let history: History = vec![("board".into(), 3, vec![("ann".into(), 7)]), ("phone".into(), 0, vec![])];
        StateOnDisk::open(&path).unwrap().keep(&history).unwrap();
        assert_eq!(StateOnDisk::open(&path).unwrap().history().unwrap(), history);
        std::fs::write(&path, "not a database, by no means one").unwrap();
        assert!(StateOnDisk::open(&path).is_err());
    }
}
