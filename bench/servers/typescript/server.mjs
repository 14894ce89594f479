// The official TypeScript SDK over HTTP, with the tool `echo`: node server.mjs REVISION json|sse
//
// As its README has it: `node:http`, the guards for Host and Origin, and a transport for each
// session; in 2026-07-28 the handler that serves each request by itself.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import {
    NodeStreamableHTTPServerTransport,
    localhostHostValidation,
    localhostOriginValidation,
    toNodeHandler
} from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

const [revision, form] = process.argv.slice(2);

function make() {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    const inputSchema = z.object({ text: z.string() });
    server.registerTool('echo', { description: 'Return the text.', inputSchema }, async ({ text }) => ({
        content: [{ type: 'text', text }]
    }));
    return server;
}

const sessions = new Map();

async function stateful(request, response) {
    const id = request.headers['mcp-session-id'];
    let transport = id === undefined ? undefined : sessions.get(id);
    if (transport === undefined) {
        if (id !== undefined) {
            response.writeHead(404).end();
            return;
        }
        transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            enableJsonResponse: form === 'json',
            onsessioninitialized: (opened) => sessions.set(opened, transport)
        });
        await make().connect(transport);
    }
    await transport.handleRequest(request, response);
}

const perRequest = toNodeHandler(createMcpHandler(make, { legacy: 'reject', responseMode: form === 'sse' ? 'sse' : 'auto' }));
const handle = revision === '2026-07-28' ? perRequest : stateful;
const isHost = localhostHostValidation();
const isOrigin = localhostOriginValidation();

const server = createServer(async (request, response) => {
    if (request.url !== '/mcp') {
        response.writeHead(404).end();
    } else if (isHost(request, response) && isOrigin(request, response)) {
        await handle(request, response);
    }
});
// Connections are idle while other servers are measured.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
