//! The state of permanent answers, in a file: whole or not at all, and readable by its owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::Refusal;

/// What is in the file; none if there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Refusal> {
    match fs::read_to_string(path) {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Puts a state in the place of what is there.
pub(crate) fn write(path: &Path, state: &str) -> Result<(), Refusal> {
    let refused = |error| format!("{}: the state could not be written: {error}", path.display());
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let mut file = private(new).map_err(refused)?;
    let written = file.write_all(state.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(new, path)).map_err(refused)
}

fn private(path: &Path) -> std::io::Result<File> {
    // One that a kill has left.
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
