//! Random well-typed programs as text. They end: recursion is over lists and counters that get smaller.

/// A source of random numbers.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n.max(1))
    }
}

/// A type of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    Int,
    Bool,
    /// Three floats.
    Vector,
    Pair,
    List,
    Option,
    /// From integers to integers.
    Function,
}

impl Ty {
    const ALL: [Ty; 7] = [Ty::Int, Ty::Bool, Ty::Vector, Ty::Pair, Ty::List, Ty::Option, Ty::Function];

    pub fn text(self) -> &'static str {
        match self {
            Ty::Int => "int32",
            Ty::Bool => "bool",
            Ty::Vector => "Tensor[(3), float32]",
            Ty::Pair => "(int32, Tensor[(3), float32])",
            Ty::List => "List[int32]",
            Ty::Option => "Option[int32]",
            Ty::Function => "fn (int32) -> int32",
        }
    }
}

/// Functions that programs may call, beside the prelude's.
pub const HELPERS: &str = r#"
def @count(%n: int32, %acc: int32) -> int32 { if (%n <= 0) { %acc } else { @count(%n - 1, %acc + %n) } }
def @nil() -> List[int32] { Nil }
def @none() -> Option[int32] { None }
def @total(%xs: List[int32]) -> int32 { match (%xs) { Cons(%x, %rest) => %x + @total(%rest), Nil => 0, } }
def @up(%xs: List[int32], %n: int32) -> List[int32] { match (%xs) { Cons(%x, %r) => Cons(%x + %n, @up(%r, %n)), Nil => Nil, } }
"#;

struct Writer<'r> {
    random: &'r mut Random,
    names: usize,
    scope: Vec<(String, Ty)>,
}

/// A function `name` of an integer and a vector.
pub fn function(random: &mut Random, name: &str) -> String {
    let ret = [Ty::Int, Ty::Vector, Ty::Pair, Ty::List, Ty::Option][random.below(5)];
    let scope = vec![("n".to_string(), Ty::Int), ("v".to_string(), Ty::Vector)];
    let mut writer = Writer { random, names: 0, scope };
    let body = writer.block(ret, 4);
    format!("def @{name}(%n: int32, %v: Tensor[(3), float32]) -> {} {{ {body} }}\n", ret.text())
}

impl Writer<'_> {
    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    /// Bindings and a result.
    fn block(&mut self, ty: Ty, depth: usize) -> String {
        let outer = self.scope.len();
        let mut text = String::new();
        for _ in 0..self.random.below(3) {
            let bound = Ty::ALL[self.random.below(Ty::ALL.len())];
            let value = self.expr(bound, depth.saturating_sub(1));
            let name = self.fresh();
            text += &format!("let %{name} = {value}; ");
            self.scope.push((name, bound));
        }
        text += &self.expr(ty, depth);
        self.scope.truncate(outer);
        text
    }

    fn known(&mut self, ty: Ty) -> Option<String> {
        let fitting: Vec<String> = self.scope.iter().filter(|(_, t)| *t == ty).map(|(n, _)| n.clone()).collect();
        (!fitting.is_empty()).then(|| format!("%{}", fitting[self.random.below(fitting.len())]))
    }

    fn leaf(&mut self, ty: Ty) -> String {
        if self.random.below(4) > 0
            && let Some(name) = self.known(ty)
        {
            return name;
        }
        match ty {
            Ty::Int => self.random.below(9).to_string(),
            Ty::Bool => {
                if self.random.below(2) == 0 {
                    "True".into()
                } else {
                    "False".into()
                }
            }
            Ty::Vector => "%v".into(),
            Ty::Pair => format!("({}, %v)", self.random.below(9)),
            // The type of the elements must follow from somewhere.
            Ty::List => "@nil()".into(),
            Ty::Option => "@none()".into(),
            Ty::Function => {
                let name = self.fresh();
                format!("fn (%{name}: int32) -> int32 {{ %{name} + {} }}", self.random.below(5))
            }
        }
    }

    fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(ty);
        }
        let d = depth - 1;
        match self.random.below(9) {
            0 => return self.leaf(ty),
            1 => {
                let (c, a, b) = (self.expr(Ty::Bool, d), self.block(ty, d), self.block(ty, d));
                return format!("(if ({c}) {{ {a} }} else {{ {b} }})");
            }
            2 => return self.matching(ty, d),
            3 => return format!("({})", self.block(ty, d)),
            4 if self.random.below(3) == 0 => {
                let (value, name) = (self.expr(ty, d), self.fresh());
                if self.random.below(2) == 0 {
                    return format!("(let %{name} = ref({value}); ref_read(%{name}))");
                }
                let (next, unit) = (self.expr(ty, d), self.fresh());
                return format!(
                    "(let %{name} = ref({value}); let %{unit} = ref_write(%{name}, {next}); ref_read(%{name}))"
                );
            }
            _ => {}
        }
        self.made(ty, d)
    }

    fn matching(&mut self, ty: Ty, d: usize) -> String {
        let (a, b) = (self.fresh(), self.fresh());
        match self.random.below(3) {
            0 => {
                let (data, nil) = (self.expr(Ty::List, d), self.block(ty, d));
                self.scope.extend([(a.clone(), Ty::Int), (b.clone(), Ty::List)]);
                let cons = self.block(ty, d);
                self.scope.truncate(self.scope.len() - 2);
                format!("(match ({data}) {{ Nil => {{ {nil} }}, Cons(%{a}, %{b}) => {{ {cons} }}, }})")
            }
            1 => {
                let (data, none) = (self.expr(Ty::Option, d), self.block(ty, d));
                self.scope.push((a.clone(), Ty::Int));
                let some = self.block(ty, d);
                self.scope.pop();
                format!("(match ({data}) {{ Some(%{a}) => {{ {some} }}, None => {{ {none} }}, }})")
            }
            _ => {
                let (first, second, other) = (self.expr(Ty::Option, d), self.expr(Ty::Pair, d), self.block(ty, d));
                self.scope.extend([(a.clone(), Ty::Int), (b.clone(), Ty::Vector)]);
                let both = self.block(ty, d);
                self.scope.truncate(self.scope.len() - 2);
                format!(
                    "(match (({first}, {second})) {{ (Some(%{a}), (_, %{b})) => {{ {both} }}, _ => {{ {other} }}, }})"
                )
            }
        }
    }

    fn made(&mut self, ty: Ty, d: usize) -> String {
        match ty {
            Ty::Int => match self.random.below(8) {
                0 => format!("({}).0", self.expr(Ty::Pair, d)),
                1 => format!("@total({})", self.expr(Ty::List, d)),
                2 => format!("(%{})({})", self.function_name(), self.expr(Ty::Int, d)),
                3 => format!("@length({})", self.expr(Ty::List, d)),
                4 => format!(
                    "@count({} - ({} / 8) * 8, {})",
                    self.expr(Ty::Int, 0),
                    self.expr(Ty::Int, 0),
                    self.expr(Ty::Int, d)
                ),
                5 => format!("minimum({}, {})", self.expr(Ty::Int, d), self.expr(Ty::Int, d)),
                _ => {
                    let op = ["+", "-", "*"][self.random.below(3)];
                    format!("({} {op} {})", self.expr(Ty::Int, d), self.expr(Ty::Int, 0))
                }
            },
            Ty::Bool => {
                let op = ["<", "<=", ">", ">=", "==", "!="][self.random.below(6)];
                format!("({} {op} {})", self.expr(Ty::Int, d), self.expr(Ty::Int, d))
            }
            Ty::Vector => match self.random.below(5) {
                0 => format!("({}).1", self.expr(Ty::Pair, d)),
                1 => format!("nn.relu({})", self.expr(Ty::Vector, d)),
                2 => format!("({} * cast({}, dtype=\"float32\"))", self.expr(Ty::Vector, d), self.expr(Ty::Int, d)),
                3 => format!("maximum({}, {})", self.expr(Ty::Vector, d), self.expr(Ty::Vector, d)),
                _ => format!("({} + {})", self.expr(Ty::Vector, d), self.expr(Ty::Vector, d)),
            },
            Ty::Pair => format!("({}, {})", self.expr(Ty::Int, d), self.expr(Ty::Vector, d)),
            Ty::List => match self.random.below(4) {
                0 => format!("@up({}, {})", self.expr(Ty::List, d), self.expr(Ty::Int, 0)),
                1 => format!("@map(%{}, {})", self.function_name(), self.expr(Ty::List, d)),
                2 => format!("@rev({})", self.expr(Ty::List, d)),
                _ => format!("Cons({}, {})", self.expr(Ty::Int, d), self.expr(Ty::List, d)),
            },
            Ty::Option => format!("Some({})", self.expr(Ty::Int, d)),
            Ty::Function => {
                let name = self.fresh();
                self.scope.push((name.clone(), Ty::Int));
                let body = self.block(Ty::Int, d.min(1));
                self.scope.pop();
                format!("fn (%{name}: int32) -> int32 {{ {body} }}")
            }
        }
    }

    /// A variable that holds a function: programs begin with one in scope.
    fn function_name(&mut self) -> String {
        let fitting: Vec<String> =
            self.scope.iter().filter(|(_, t)| *t == Ty::Function).map(|(n, _)| n.clone()).collect();
        match fitting.len() {
            0 => "f0".into(),
            n => fitting[self.random.below(n)].clone(),
        }
    }
}

/// A module of random functions `r0`, `r1` …, which use the prelude.
pub fn module(seed: u64, functions: usize) -> String {
    let mut random = Random::new(seed + 1);
    let mut text = format!("#[version = \"0.0.5\"]\n{HELPERS}");
    for i in 0..functions {
        let function = function(&mut random, &format!("r{i}"));
        // The function that every program has in scope.
        text += &function.replacen("{ ", "{ let %f0 = fn (%y: int32) -> int32 { %y * 2 + 1 }; ", 1);
    }
    text
}
