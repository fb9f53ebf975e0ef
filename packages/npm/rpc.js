// Remote calls over WebSocket, through a proxy (`relaxide rpc proxy --web-port PORT`), in browsers, their workers and Node.
//
// rpc-wire.js    packets and values
// rpc-line.js    a WebSocket as a stream of packets
// rpc-client.js  a session with a server elsewhere
// rpc-server.js  a server here
// rpc-memory.js  what it keeps for a session
// rpc-models.js  models that clients send it

export { connect, RemoteFunction, RemoteModule, RemoteObject, RemoteTensor, Session } from "./rpc-client.js";
export { serve } from "./rpc-server.js";
export { DataType, Device } from "./rpc-wire.js";
export { RelaxideError } from "./memory.js";
