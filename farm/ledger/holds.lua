-- Who may not measure, and why: what people pause, and what gates take out of the fleet, within a
-- valve. entry.lua stands before it, ledger.lua behind it.

local VALVE_MS, VALVE_SHARE, POISON_MS, POISON = 3600000, 0.1, 600000, 3
local KEEP_CASES_MS = 86400000

local function hold_of(target, about)
  local found = redis.call('HGET', 'farm:hold', target .. '|' .. about)
  return found and cjson.decode(found)
end

local function put_hold(target, about, hold)
  hold.at = text(server_us() / 1000)
  if hold.kind == 'unpaused' then
    redis.call('HDEL', 'farm:hold', target .. '|' .. about)
  else
    redis.call('HSET', 'farm:hold', target .. '|' .. about, cjson.encode(hold))
  end
  redis.call('XADD', 'farm:health', 'MAXLEN', '~', '10000', '*', 'target', target,
    'kind', hold.kind, 'note', hold.note, 'by', hold.by)
end

-- What forbids a claim, nil where nothing does.
local function barred(node, slot)
  for _, target in ipairs({node, node .. '/' .. slot}) do
    if hold_of(target, 'pause') then return 'paused' end
    local health = hold_of(target, 'health')
    if health and (health.kind == 'quarantine' or health.kind == 'held') then return health.kind end
  end
end

-- What is held of a node and its devices, as {target, about, hold}.
local function holds_of(node)
  local found, all = {}, redis.call('HGETALL', 'farm:hold')
  for i = 1, #all, 2 do
    local target, about = string.match(all[i], '^(.*)|(%a+)$')
    if target == node or string.sub(target, 1, #node + 1) == node .. '/' then
      found[#found + 1] = {target = target, about = about, hold = cjson.decode(all[i + 1])}
    end
  end
  return found
end

-- The live devices of a class, and how many of them measure.
local function fleet(class)
  local all, serving = 0, 0
  for _, node in ipairs(redis.call('SMEMBERS', 'farm:nodes')) do
    local at = 'farm:node:' .. node
    if now() - tonumber(redis.call('HGET', at, 'heartbeat') or '0') < ttl() then
      for _, slot in ipairs(cjson.decode(redis.call('HGET', at, 'slots') or '[]')) do
        if slot.system_class == class then
          all = all + 1
          if not barred(node, slot.slot) then serving = serving + 1 end
        end
      end
    end
  end
  return all, serving
end

-- Cases of the last day, and of these the devices that were taken out of a class within the hour
-- and those that broke around a job within ten minutes.
local function cases(class, job)
  redis.call('ZREMRANGEBYSCORE', 'farm:cases', '-inf', text(now() - KEEP_CASES_MS))
  local taken, broke = 0, {}
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', 'farm:cases', text(now() - VALVE_MS), '+inf')) do
    local case = cjson.decode(each)
    if case.class == class and case.kind == 'quarantine' then taken = taken + 1 end
    if job ~= '' and case.job == job and case.severity == 'hard'
      and tonumber(case.at) > now() - POISON_MS then
      broke[case.node .. '/' .. case.slot] = true
    end
  end
  local devices = 0
  for _ in pairs(broke) do devices = devices + 1 end
  return taken, devices
end

-- A node asks to take a device out. It may, for one in ten of a class within an hour and never for
-- its last one; beyond that a soft case serves on as a suspect, and a hard one is held.
local function quarantine(a)
  local target = a.node .. '/' .. a.slot
  local known = hold_of(target, 'health')
  if known and known.kind ~= 'cleared' and (known.severity == a.severity or a.severity == 'soft') then
    return known.kind
  end
  local all, serving = fleet(a.class)
  local taken = cases(a.class, '')
  local kind = 'quarantine'
  if serving <= 1 or taken >= math.max(1, math.floor(all * VALVE_SHARE)) then
    kind = a.severity == 'hard' and 'held' or 'suspect'
  end
  redis.call('ZADD', 'farm:cases', text(now()), cjson.encode({class = a.class, node = a.node,
    slot = a.slot, kind = kind, severity = a.severity, cause = a.cause, job = a.job, run = a.run,
    driver = a.driver, at = text(now())}))
  put_hold(target, 'health', {kind = kind, note = a.note, by = 'node', severity = a.severity,
    cause = a.cause, job = a.job})
  local _, broke = cases(a.class, a.job)
  -- One job that breaks device after device is to blame, not the devices.
  if broke >= POISON and get(a.job, 'state') then put(a.job, 'poisoned', '1') end
  return kind
end
