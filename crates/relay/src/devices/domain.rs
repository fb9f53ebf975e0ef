//! Devices that are not known yet.
//!
//! A [`Domain`] stands for the device of a value, or for the devices of a function's parameters and its result. Making two of them
//! one is unification; what would have to be on two devices is a [`Conflict`].

use relaxide_ffi::Ref;
use relaxide_ir::{DisjointSets, Span};

use super::VirtualDevice;
use crate::Type;

/// The place of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Domain(usize);

/// What is known of the domains of a set, which are one.
enum KnownDomain {
    /// Not known.
    Free,
    /// KnownDomain, and where that was said.
    Fixed(usize, Option<Ref<Span>>),
    /// A function's: parameters and result.
    Func(Vec<Domain>, Domain),
}

/// Two devices for one value.
pub(super) struct Conflict {
    /// Each, and where it was said.
    pub devices: [(usize, Option<Ref<Span>>); 2],
}

pub(super) struct Domains {
    sets: DisjointSets<KnownDomain>,
    pub devices: Vec<VirtualDevice>,
}

impl Domains {
    pub fn new(host: VirtualDevice) -> Domains {
        Domains { sets: DisjointSets::default(), devices: vec![host] }
    }

    /// The number of a device.
    pub fn device(&mut self, device: &VirtualDevice) -> usize {
        self.devices.iter().position(|d| d == device).unwrap_or_else(|| {
            self.devices.push(device.clone());
            self.devices.len() - 1
        })
    }

    fn add(&mut self, known: KnownDomain) -> Domain {
        Domain(self.sets.add(known))
    }

    pub fn free(&mut self) -> Domain {
        self.add(KnownDomain::Free)
    }

    pub fn fixed(&mut self, device: usize, span: Option<&Ref<Span>>) -> Domain {
        self.add(KnownDomain::Fixed(device, span.cloned()))
    }

    /// What a value of a type has: functions have one for each parameter.
    pub fn of_type(&mut self, ty: Option<&Type>) -> Domain {
        match ty {
            Some(Type::Func(f)) => {
                let params = f.args.iter().map(|ty| self.of_type(Some(ty))).collect();
                let result = self.of_type(Some(&f.ret));
                self.add(KnownDomain::Func(params, result))
            }
            _ => self.free(),
        }
    }

    pub fn func(&mut self, params: Vec<Domain>, result: Domain) -> Domain {
        self.add(KnownDomain::Func(params, result))
    }

    /// Parameters and result, of a function.
    pub fn parts(&self, domain: Domain) -> Option<(Vec<Domain>, Domain)> {
        match self.sets.value(domain.0) {
            KnownDomain::Func(params, result) => Some((params.clone(), *result)),
            _ => None,
        }
    }

    /// The device, if it is known; of a function, where its result is.
    pub fn known(&self, domain: Domain) -> Option<usize> {
        match self.sets.value(domain.0) {
            KnownDomain::Fixed(device, _) => Some(*device),
            KnownDomain::Func(_, result) => self.known(*result),
            _ => None,
        }
    }

    /// Says where what is not known is.
    pub fn default_to(&mut self, domain: Domain, device: usize) {
        for leaf in self.leaves(domain) {
            if matches!(self.sets.value(leaf.0), KnownDomain::Free) {
                self.sets.set(leaf.0, KnownDomain::Fixed(device, None));
            }
        }
    }

    /// The devices that a domain is made of.
    fn leaves(&self, domain: Domain) -> Vec<Domain> {
        match self.parts(domain) {
            Some((params, result)) => params.into_iter().chain([result]).flat_map(|part| self.leaves(part)).collect(),
            None => vec![domain],
        }
    }

    /// Makes two domains one. A function and a value: all that the function takes and gives is where the value is.
    pub fn unify(&mut self, a: Domain, b: Domain) -> Result<(), Conflict> {
        if self.sets.root(a.0) == self.sets.root(b.0) {
            return Ok(());
        }
        match (self.sets.value(a.0), self.sets.value(b.0)) {
            (KnownDomain::Func(p, r), KnownDomain::Func(q, s)) if p.len() == q.len() => {
                let pairs: Vec<(Domain, Domain)> = p.iter().copied().zip(q.iter().copied()).chain([(*r, *s)]).collect();
                pairs.into_iter().try_for_each(|(a, b)| self.unify(a, b))
            }
            (KnownDomain::Func(..), _) => self.leaves(a).into_iter().try_for_each(|leaf| self.unify(leaf, b)),
            (_, KnownDomain::Func(..)) => self.leaves(b).into_iter().try_for_each(|leaf| self.unify(a, leaf)),
            (KnownDomain::Free, _) => {
                self.sets.join(b.0, a.0);
                Ok(())
            }
            (KnownDomain::Fixed(x, one), KnownDomain::Fixed(y, other)) if x != y => {
                Err(Conflict { devices: [(*x, one.clone()), (*y, other.clone())] })
            }
            (_, KnownDomain::Free) | (KnownDomain::Fixed(..), KnownDomain::Fixed(..)) => {
                self.sets.join(a.0, b.0);
                Ok(())
            }
        }
    }
}
