// How checks reach an agent that is elsewhere.

const patience = 30_000;

// remote returns an object with the methods of an agent, which send sends to it,
// with kill, by which it leaves the server, and with end, by which all of it goes.
export function remote(send, kill, end = kill) {
  const call = async (method, args) => {
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, patience, { error: { message: `${method}(${args[0]}): no answer in ${patience / 1000} s` } });
    });
    const { result, error } = await Promise.race([send(method, args), late]);
    clearTimeout(timer);
    if (error) {
      throw Object.assign(new Error(error.message), error);
    }
    return result;
  };
  return new Proxy({ kill, end }, {
    get(target, name) {
      if (name in target || name === 'then') { // it is no promise
        return target[name];
      }
      return (...args) => call(name, args);
    },
  });
}
