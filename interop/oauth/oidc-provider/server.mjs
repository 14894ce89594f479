// The certified authorization server `oidc-provider`, on a port of the loopback interface:
//
//     node server.mjs PORT
//
// The user "ann" logs in and consents at once. POST /control/rotate signs with new keys and keeps
// the old public ones; POST /control/lifetime?seconds=N changes how long access tokens live;
// GET /control/grants lists the grants that were exchanged for tokens.

import { generateKeyPairSync, randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const scopes = ["files:read", "files:write"];
const cookieKeys = [randomBytes(16).toString("hex")];
const nonceSecret = randomBytes(32);
const grants = [];
let lifetime = 300;
let keys = [];

function newKeys() {
  const options = { ES256: ["ec", { namedCurve: "P-256" }], RS256: ["rsa", { modulusLength: 2048 }] };
  return Object.entries(options).map(([alg, [kind, option]]) => ({
    ...generateKeyPairSync(kind, option).privateKey.export({ format: "jwk" }),
    kid: randomUUID(),
    alg,
    use: "sig",
  }));
}

function makeProvider() {
  // The first key of an algorithm signs; the others verify what they signed before.
  keys = [...newKeys(), ...keys];
  const provider = new Provider(issuer, {
    jwks: { keys },
    cookies: { keys: cookieKeys },
    scopes: ["openid", "offline_access", ...scopes],
    clientDefaults: { id_token_signed_response_alg: "ES256", grant_types: ["authorization_code"] },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (ctx, client) => client.grantTypeAllowed("refresh_token"),
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    ttl: { Grant: 3600, Session: 3600, Interaction: 600, RefreshToken: 3600 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true, nonceSecret, requireNonce: () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => ({
          audience: resource,
          scope: scopes.join(" "),
          accessTokenFormat: "jwt",
          accessTokenTTL: lifetime,
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  provider.on("grant.success", (ctx) => {
    grants.push({ type: ctx.oidc.params.grant_type, client: ctx.oidc.client.clientId });
  });
  provider.on("server_error", (ctx, error) => console.error(error));
  for (const each of ["authorization.error", "grant.error", "registration_create.error"]) {
    provider.on(each, (ctx, error) => console.error(each, error.error, error.error_description));
  }
  return provider;
}

let provider = makeProvider();
let callback = provider.callback();

async function consent({ params, session }) {
  const grant = new provider.Grant({ clientId: params.client_id, accountId: session.accountId });
  grant.addOIDCScope(params.scope ?? "");
  for (const resource of [params.resource ?? []].flat()) {
    grant.addResourceScope(resource, scopes.join(" "));
  }
  return { consent: { grantId: await grant.save() } };
}

async function interact(request, response) {
  const details = await provider.interactionDetails(request, response);
  const isLogin = details.prompt.name === "login";
  const result = isLogin ? { login: { accountId: "ann" } } : await consent(details);
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

function control(url, method, response) {
  if (url.pathname === "/control/rotate" && method === "POST") {
    provider = makeProvider();
    callback = provider.callback();
  } else if (url.pathname === "/control/lifetime" && method === "POST") {
    lifetime = Number(url.searchParams.get("seconds"));
  }
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(grants));
}

createServer((request, response) => {
  const url = new URL(request.url, issuer);
  if (url.pathname.startsWith("/control/")) {
    control(url, request.method, response);
  } else if (url.pathname.startsWith("/interaction/")) {
    interact(request, response).catch((error) => {
      console.error(error);
      response.statusCode = 500;
      response.end();
    });
  } else {
    callback(request, response);
  }
}).listen(port, "127.0.0.1");
