//! [`Code`]: what a packet is for. One table, from which the names and the numbers come.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What a packet is for. The numbers are TVM's, but for those that only two ends of ours say.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The name, as error messages give it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Code::$name => stringify!($name),)*
                }
            }
        }
    };
}

codes! {
    /// Ends the conversation.
    Shutdown = 1,
    /// Begins it: version, and how the session is made.
    InitServer = 2,
    /// Calls a function that the receiver gave a handle of.
    CallFunc = 3,
    /// The result of a request.
    Return = 4,
    /// The error of a request.
    Exception = 5,
    /// Asks for bytes of a tensor.
    CopyFromRemote = 6,
    /// Brings bytes of a tensor.
    CopyToRemote = 7,
    /// The bytes that were asked for.
    CopyAck = 8,
    /// Asks for a function by name.
    GetGlobalFunc = 9,
    /// Gives a handle back.
    FreeHandle = 10,
    /// Makes a device the current one.
    DevSetDevice = 11,
    /// Asks for a property of a device.
    DevGetAttr = 12,
    /// Allocates memory.
    DevAllocData = 13,
    /// Frees memory.
    DevFreeData = 14,
    /// Waits for a stream.
    DevStreamSync = 15,
    /// Copies between two tensors of the receiver.
    CopyAmongRemote = 16,
    /// Allocates memory for a tensor in a scope.
    DevAllocDataWithScope = 17,
    /// Makes a stream.
    DevCreateStream = 18,
    /// Ends a stream.
    DevFreeStream = 19,
    /// Makes a stream the current one.
    DevSetStream = 20,
    /// Asks for the current stream.
    DevGetCurrentStream = 21,
    /// Asks for an end of a request that is served or waits. Ours; it has no reply of its own.
    Cancel = 1024,
}

impl Code {
    /// The code of a number.
    pub fn from_number(number: i32) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| *code as i32 == number)
    }

    /// True for what answers a request.
    pub fn is_reply(self) -> bool {
        matches!(self, Code::Return | Code::Exception | Code::CopyAck)
    }

    /// True for what TVM's protocol has no packet for.
    pub fn is_ours(self) -> bool {
        self == Code::Cancel
    }

    /// True for the requests whose arguments are one sequence of values and whose reply is one value.
    pub fn is_system_call(self) -> bool {
        (Code::GetGlobalFunc as i32..=Code::DevGetCurrentStream as i32).contains(&(self as i32))
    }
}
