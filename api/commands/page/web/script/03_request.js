// Sends requests to the program, with the token of this page.

const token = takeToken();

/// The token stands in the address that the program prints; it is taken out of the address bar.
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given || sessionStorage.getItem("token") || "";
}

/// Why a request was refused. `code` and `diagnostics` are those of the program.
class Refused extends Error {
  constructor(status, body) {
    super(body.message || `the program answered ${status}`);
    this.status = status;
    this.code = body.code || "";
    this.diagnostics = body.diagnostics || [];
  }
}

async function request(path, body) {
  const headers = {"X-Tandem-Token": token};
  if (body) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`/api/${path}`, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      cache: "no-store",
      credentials: "omit"
    });
  } catch {
    throw new Refused(0, {
      code: "gone",
      message: "The program does not answer. Start it again and open the address that it prints."
    });
  }
  const json = await answer.json().catch(() => ({}));
  if (answer.ok) return json;
  const refused = new Refused(answer.status, json.error || {});
  refused.disk = json.disk;
  throw refused;
}

const get = path => request(path);
const post = (path, body) => request(path, body);
