//! IRModule: functions of every language by name, and the devices and attributes that they share.

use indexmap::IndexMap;
use relaxide_ffi::{Any, AnyView, Error, Field, FromAny, Object, ObjectRef, Ref, StructuralEqual, StructuralHash};

use crate::target::TargetKind;
use crate::{Attrs, Target, Type};

/// The name of a function of a module. Two of one name in one module are the same function.
#[derive(Object, Debug)]
#[object(key = "ir.GlobalVar")]
pub struct GlobalVar {
    /// The name.
    pub name: String,
    /// Its type, where inferred.
    #[field(ignore)]
    pub ty: Type,
}

impl GlobalVar {
    /// A reference to the function `name`.
    pub fn new(name: impl Into<String>) -> Ref<GlobalVar> {
        GlobalVar::typed(name, Type::missing())
    }

    /// A reference of known type.
    pub fn typed(name: impl Into<String>, ty: Type) -> Ref<GlobalVar> {
        Ref::new(GlobalVar { name: name.into(), ty })
    }
}

/// A device that tensors of a module may live on, before real devices are chosen.
#[derive(Object, Debug)]
#[object(key = "relax.VDevice")]
pub struct VDevice {
    /// What kernels for it are compiled for; nothing: it stands for no device in particular.
    pub target: Option<Ref<Target>>,
    /// Which of several devices of that kind.
    pub id: i64,
    /// Memory scope.
    pub scope: String,
}

/// Something that the functions of a module share of which nothing is known: it stands for itself.
#[derive(Object, Debug)]
#[object(key = "relax.DummyGlobalInfo")]
pub struct DummyGlobalInfo {}

impl VDevice {
    /// A device of a target.
    pub fn new(target: Target, id: i64, scope: impl Into<String>) -> Ref<VDevice> {
        Ref::new(VDevice { target: Some(Ref::new(target)), id, scope: scope.into() })
    }

    /// The kind of its target.
    pub fn kind(&self) -> Option<TargetKind> {
        self.target.as_ref().map(|target| target.kind)
    }

    /// The type of device that data lives on, as DLPack numbers it.
    pub fn device_type(&self) -> Option<i32> {
        self.target.as_ref().map(|target| target.device_type())
    }

    /// Whether both name the same device: by what they say, not by which object they are.
    pub fn is_same(&self, other: &VDevice) -> bool {
        let VDevice { target, id, scope } = self;
        target.as_deref() == other.target.as_deref() && (id, scope) == (&other.id, &other.scope)
    }
}

impl std::fmt::Display for VDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.target {
            Some(target) => write!(f, "{target}:{}:{}", self.id, self.scope),
            None => write!(f, "no device"),
        }
    }
}

/// Whether two places, or none, are the same.
pub fn same_place(a: Option<&VDevice>, b: Option<&VDevice>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.is_same(b),
        (None, None) => true,
        _ => false,
    }
}

/// A function of some language. Its language's crate knows the type and offers typed access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseFunc(pub ObjectRef);

impl BaseFunc {
    /// The function as a node of type `T`, if it is one.
    pub fn downcast<T: Object>(&self) -> Option<Ref<T>> {
        self.0.clone().downcast::<T>().ok()
    }
}

impl<T: Object> From<Ref<T>> for BaseFunc {
    fn from(func: Ref<T>) -> Self {
        BaseFunc(func.into())
    }
}

impl FromAny for BaseFunc {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.to().map(BaseFunc)
    }
}

impl Field for BaseFunc {
    fn to_any(&self) -> Any {
        Any::from(self.0.clone())
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self.0.s_equal(&other.0, eq)
    }

    fn s_hash(&self, h: &mut StructuralHash) {
        self.0.s_hash(h);
    }
}

/// A program: functions by name, in order of definition. A pass clones it (cheaply: functions are shared) and replaces
/// what it changes.
#[derive(Object, Debug, Clone, Default)]
#[object(key = "ir.IRModule")]
pub struct IRModule {
    /// The functions.
    pub functions: IndexMap<String, BaseFunc>,
    /// The devices that tensor types may name, in order.
    pub vdevices: Vec<Ref<VDevice>>,
    /// What else the functions share, by kind.
    pub infos: IndexMap<String, Vec<ObjectRef>>,
    /// Attributes of the module.
    pub attrs: Attrs,
}

impl IRModule {
    /// A module without functions.
    pub fn new() -> Self {
        IRModule::default()
    }

    /// Adds or replaces a function.
    pub fn insert(&mut self, name: impl Into<String>, func: impl Into<BaseFunc>) {
        self.functions.insert(name.into(), func.into());
    }

    /// The function of a name.
    pub fn get(&self, name: &str) -> Option<&BaseFunc> {
        self.functions.get(name)
    }

    /// The function of a name, where it is one of type `T`.
    pub fn get_as<T: Object>(&self, name: &str) -> Option<Ref<T>> {
        self.get(name)?.downcast::<T>()
    }

    /// All functions of type `T` with their names, in order.
    pub fn functions_of<T: Object>(&self) -> impl Iterator<Item = (&str, Ref<T>)> {
        self.functions.iter().filter_map(|(name, func)| Some((name.as_str(), func.downcast::<T>()?)))
    }

    /// A name that no function has yet: `hint`, or `hint1`, `hint2` …
    pub fn fresh_name(&self, hint: &str) -> String {
        if !self.functions.contains_key(hint) {
            return hint.to_string();
        }
        let name = |number: usize| format!("{hint}{number}");
        let is_free = |number: usize| !self.functions.contains_key(&name(number));
        // Numbers are given out in order, so the first that is free is found by halving; where some in between are free, one of
        // them is as good.
        let mut free = 1;
        while !is_free(free) {
            free *= 2;
        }
        let mut taken = free / 2;
        while free - taken > 1 {
            let middle = taken + (free - taken) / 2;
            if is_free(middle) { free = middle } else { taken = middle }
        }
        name(free)
    }
}
