//! Devices that are not known yet.
//!
//! A [`Domain`] stands for the device of a value, or for the devices of a function's parameters and its result. Making two of them
//! one is unification; what would have to be on two devices is a [`Conflict`].

use relaxide_ffi::Ref;
use relaxide_ir::Span;

use super::VirtualDevice;
use crate::Type;

/// The place of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Domain(usize);

enum DomainNode {
    /// The same as another.
    Link(Domain),
    /// Not known.
    Free,
    /// Known, and where that was said.
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
    nodes: Vec<DomainNode>,
    pub devices: Vec<VirtualDevice>,
}

impl Domains {
    pub fn new(host: VirtualDevice) -> Domains {
        Domains { nodes: Vec::new(), devices: vec![host] }
    }

    /// The number of a device.
    pub fn device(&mut self, device: &VirtualDevice) -> usize {
        self.devices.iter().position(|d| d == device).unwrap_or_else(|| {
            self.devices.push(device.clone());
            self.devices.len() - 1
        })
    }

    fn add(&mut self, node: DomainNode) -> Domain {
        self.nodes.push(node);
        Domain(self.nodes.len() - 1)
    }

    pub fn free(&mut self) -> Domain {
        self.add(DomainNode::Free)
    }

    pub fn fixed(&mut self, device: usize, span: Option<&Ref<Span>>) -> Domain {
        self.add(DomainNode::Fixed(device, span.cloned()))
    }

    /// What a value of a type has: functions have one for each parameter.
    pub fn of_type(&mut self, ty: Option<&Type>) -> Domain {
        match ty {
            Some(Type::Func(f)) => {
                let params = f.args.iter().map(|ty| self.of_type(Some(ty))).collect();
                let result = self.of_type(Some(&f.ret));
                self.add(DomainNode::Func(params, result))
            }
            _ => self.free(),
        }
    }

    pub fn func(&mut self, params: Vec<Domain>, result: Domain) -> Domain {
        self.add(DomainNode::Func(params, result))
    }

    fn root(&self, mut domain: Domain) -> Domain {
        while let DomainNode::Link(next) = &self.nodes[domain.0] {
            domain = *next;
        }
        domain
    }

    /// The root, and shorter ways to it from now on.
    fn find(&mut self, domain: Domain) -> Domain {
        let root = self.root(domain);
        let mut at = domain;
        while let DomainNode::Link(next) = self.nodes[at.0] {
            if next == root {
                break;
            }
            self.nodes[at.0] = DomainNode::Link(root);
            at = next;
        }
        root
    }

    /// Parameters and result, of a function.
    pub fn parts(&self, domain: Domain) -> Option<(Vec<Domain>, Domain)> {
        match &self.nodes[self.root(domain).0] {
            DomainNode::Func(params, result) => Some((params.clone(), *result)),
            _ => None,
        }
    }

    /// The device, if it is known; of a function, where its result is.
    pub fn known(&self, domain: Domain) -> Option<usize> {
        match &self.nodes[self.root(domain).0] {
            DomainNode::Fixed(device, _) => Some(*device),
            DomainNode::Func(_, result) => self.known(*result),
            _ => None,
        }
    }

    /// Says where what is not known is.
    pub fn default_to(&mut self, domain: Domain, device: usize) {
        for leaf in self.leaves(domain) {
            let root = self.root(leaf);
            if matches!(self.nodes[root.0], DomainNode::Free) {
                self.nodes[root.0] = DomainNode::Fixed(device, None);
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
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return Ok(());
        }
        match (&self.nodes[a.0], &self.nodes[b.0]) {
            (DomainNode::Func(p, r), DomainNode::Func(q, s)) if p.len() == q.len() => {
                let pairs: Vec<(Domain, Domain)> = p.iter().copied().zip(q.iter().copied()).chain([(*r, *s)]).collect();
                pairs.into_iter().try_for_each(|(a, b)| self.unify(a, b))
            }
            (DomainNode::Func(..), _) => self.leaves(a).into_iter().try_for_each(|leaf| self.unify(leaf, b)),
            (_, DomainNode::Func(..)) => self.leaves(b).into_iter().try_for_each(|leaf| self.unify(a, leaf)),
            (DomainNode::Free, _) => {
                self.nodes[a.0] = DomainNode::Link(b);
                Ok(())
            }
            (_, DomainNode::Free) => {
                self.nodes[b.0] = DomainNode::Link(a);
                Ok(())
            }
            (DomainNode::Fixed(x, one), DomainNode::Fixed(y, other)) => {
                if x == y {
                    self.nodes[b.0] = DomainNode::Link(a);
                    return Ok(());
                }
                Err(Conflict { devices: [(*x, one.clone()), (*y, other.clone())] })
            }
            // A root is no link.
            (DomainNode::Link(_), _) | (_, DomainNode::Link(_)) => Ok(()),
        }
    }
}
