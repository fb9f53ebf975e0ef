//! [`Identity`]: a key pair and its certificate; fingerprints; tokens.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use relaxide_ffi::{Error, ErrorKind};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What a certificate is known by: the SHA-256 of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Fingerprint {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Fingerprint(bytes)
    }

    /// Reads `sha256:` and 64 digits.
    pub fn parse(text: &str) -> Result<Fingerprint, Error> {
        let wrong = || {
            let message = format!("{text:?} is no fingerprint; it is what `rpc keygen` prints: sha256: and 64 digits");
            Error::new(ErrorKind::ValueError, message)
        };
        let digits =
            text.strip_prefix("sha256:").filter(|digits| digits.len() == 64 && digits.is_ascii()).ok_or_else(wrong)?;
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Fingerprint(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An end's own key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Identity { certificate: self.certificate.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint())
    }
}

fn failed(what: &str, error: &dyn fmt::Display) -> Error {
    Error::new(ErrorKind::RuntimeError, format!("cannot {what}: {error}"))
}

/// Writes a file that only its owner reads, and that was not there.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Error::new(ErrorKind::OSError, format!("cannot write {}: {error}", path.display())))
}

impl Identity {
    /// A new one, as the text of a file: Ed25519, signed by itself.
    pub fn generate() -> Result<String, Error> {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(|error| failed("make a key", &error))?;
        let params = rcgen::CertificateParams::new(vec!["relaxide-rpc".to_owned()]);
        let certificate = params.and_then(|params| params.self_signed(&key));
        let certificate = certificate.map_err(|error| failed("make a certificate", &error))?;
        Ok(format!("{}{}", key.serialize_pem(), certificate.pem()))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Identity, Error> {
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| failed("read the key", &error))?;
        let certificate =
            CertificateDer::from_pem_slice(text.as_bytes()).map_err(|error| failed("read the certificate", &error))?;
        Ok(Identity { certificate, key })
    }

    /// Reads a file; where none is named, makes one for this process alone.
    pub fn read(path: Option<&str>) -> Result<Identity, Error> {
        let text = match path {
            None => Identity::generate()?,
            Some(path) => std::fs::read_to_string(path).map_err(|error| {
                let message = format!("cannot read the key {path}: {error}; `rpc keygen --out {path}` makes one");
                Error::new(ErrorKind::OSError, message)
            })?,
        };
        Identity::parse(&text).map_err(|error| error.context(path.unwrap_or("a new key")))
    }

    /// What the other end pins.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }
}

/// A shared secret.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The fewest bytes of a secret.
    const LEAST: usize = 16;

    /// Makes one, as the text of a file.
    pub fn generate() -> Result<String, Error> {
        let bytes: [u8; 32] = crate::random::bytes()?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n")
    }

    /// Takes a secret.
    pub fn new(secret: &str) -> Result<Token, Error> {
        let secret = secret.trim();
        match secret.len() >= Token::LEAST {
            true => Ok(Token(secret.as_bytes().to_vec())),
            false => {
                let message =
                    format!("a token has at least {} characters; `rpc keygen --token FILE` makes one", Token::LEAST);
                Err(Error::new(ErrorKind::ValueError, message))
            }
        }
    }

    /// Reads a file: the secret, and what stands behind its first line.
    pub fn read(path: &str) -> Result<(Token, String), Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new(ErrorKind::OSError, format!("cannot read the token {path}: {error}")))?;
        let (secret, rest) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((Token::new(secret)?, rest.trim().to_owned()))
    }

    /// What shows that an end knows the token: a code over what TLS derived for one connection and one side.
    pub(crate) fn proof(&self, material: &[u8]) -> Vec<u8> {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.0);
        ring::hmac::sign(&key, material).as_ref().to_vec()
    }

    /// Whether a proof is right. The time that it takes says nothing.
    pub(crate) fn accepts(&self, material: &[u8], proof: &[u8]) -> bool {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.0);
        ring::hmac::verify(&key, material, proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_made() {
        let text = Identity::generate().unwrap();
        let (a, b) = (Identity::parse(&text).unwrap(), Identity::parse(&text).unwrap());
        assert_eq!(a.fingerprint(), b.fingerprint());
        assert_eq!(Fingerprint::parse(&a.fingerprint().to_string()).unwrap(), a.fingerprint());
        assert_ne!(Identity::read(None).unwrap().fingerprint(), a.fingerprint());
        for wrong in ["", "sha256:", "sha256:zz", &"sha256:é".repeat(9)] {
            assert!(Fingerprint::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Identity::parse("nothing").is_err());
    }

    #[test]
    fn a_proof_is_of_one_token_and_one_connection() {
        let (a, b) = (Token::new(&Token::generate().unwrap()).unwrap(), Token::new("sixteen letters!").unwrap());
        let proof = a.proof(b"material");
        assert!(a.accepts(b"material", &proof));
        assert!(!a.accepts(b"another", &proof) && !b.accepts(b"material", &proof) && !a.accepts(b"material", b""));
        assert!(Token::new("short").is_err());
    }
}
